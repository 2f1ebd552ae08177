/* The views of the matrix that show digest classes. */
#ifndef API_CLASSES_H
#define API_CLASSES_H

struct request;

/* Answers a request of /v1/matrix whose view is environments or devices. */
void classes_get(struct request *r);

#endif
