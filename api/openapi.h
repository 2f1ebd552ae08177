/* The description of the interface (OpenAPI 3.1): the paths from the table of routes,
 * everything that they refer to from api/openapi.json. */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

/* The document.  Caller frees. */
char *openapi_render(void);

#endif
