/* Macros of the test programs: a failed call ends the program with a message. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

#define MUST(call)                                                                                        \
    do {                                                                                                  \
        aclError must_ret = (call);                                                                       \
        if (must_ret != ACL_SUCCESS) {                                                                    \
            const char *must_text = aclGetRecentErrMsg();                                                 \
            fprintf(stderr, "%s:%d: %s returned %d\n%s\n", __FILE__, __LINE__, #call, must_ret,               \
                    must_text == NULL ? "" : must_text);                                                  \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

#define TRUE_OR_EXIT(condition)                                                                           \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                 \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

#endif
