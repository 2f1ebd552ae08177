/* The handlers of all routes (api/http/routes.c).  Each is called on the loop thread with
 * a request whose path, format and parameter names are checked, and replies or goes to
 * the store. */
#ifndef API_HTTP_HANDLERS_H
#define API_HTTP_HANDLERS_H

#include <stdbool.h>

struct request;

void root_get(struct request *r);
bool assets_exist(const char *name);
void assets_get(struct request *r);
void jobs_post(struct request *r);
void jobs_get_list(struct request *r);
void jobs_get_one(struct request *r);
void jobs_delete(struct request *r);
void jobs_rerun(struct request *r);
void digests_get(struct request *r);
void localisation_get(struct request *r);
void runs_get_list(struct request *r);
void runs_get_one(struct request *r);
void runs_get_log(struct request *r);
void traces_get_one(struct request *r);
void compare_get(struct request *r);
void matrix_get(struct request *r);
void cells_get_one(struct request *r);
void cells_get_history(struct request *r);
void cells_get_evidence(struct request *r);
void workloads_get_list(struct request *r);
void workloads_get_one(struct request *r);
void profiles_get(struct request *r);
void stacks_get(struct request *r);
void findings_get(struct request *r);
void environments_get_list(struct request *r);
void environments_get_one(struct request *r);
void devices_get(struct request *r);
void devices_get_one(struct request *r);
void hosts_get(struct request *r);
void events_get(struct request *r);
void health_get(struct request *r);
void ready_get(struct request *r);
void metrics_get(struct request *r);
void openapi_get(struct request *r);
void problem_types_get_list(struct request *r);
void problem_types_get_one(struct request *r);

#endif
