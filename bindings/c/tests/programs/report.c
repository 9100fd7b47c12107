/* Runs callbacks between the tasks of a stream in a thread of the program. */
#include <pthread.h>

#include "check.h"

static volatile int is_over;
static int n_called;

static void count(void *user_data)
{
    n_called += *(int *)user_data;
}

static void *serve(void *unused)
{
    (void)unused;
    while (!is_over) {
        aclError ret = aclrtProcessReport(50);
        TRUE_OR_EXIT(ret == ACL_SUCCESS || ret == ACL_ERROR_WAIT_CALLBACK_TIMEOUT ||
                     ret == ACL_ERROR_RT_REPORT_TIMEOUT || ret == ACL_ERROR_THREAD_NOT_SUBSCRIBE ||
                     ret == ACL_ERROR_RT_THREAD_SUBSCRIBE);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    aclrtStream stream = NULL;
    int one = 1;
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateStream(&stream));
    TRUE_OR_EXIT(pthread_create(&thread, NULL, serve, NULL) == 0);
    MUST(aclrtSubscribeReport((uint64_t)thread, stream));
    for (int i = 0; i < 3; i++) {
        MUST(aclrtLaunchCallback(count, &one, ACL_CALLBACK_BLOCK, stream));
    }
    MUST(aclrtSynchronizeStream(stream));
    TRUE_OR_EXIT(n_called == 3);
    MUST(aclrtUnSubscribeReport((uint64_t)thread, stream));
    is_over = 1;
    TRUE_OR_EXIT(pthread_join(thread, NULL) == 0);
    MUST(aclrtDestroyStream(stream));
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
