/*
 * Forks while a model runs in another thread and is dumped: fork MODEL CONFIG INPUT CHILD_CONFIG.
 * Prints how often the model ran. The last fork begins a separate dump.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"

/* Longer than any fork takes; a hung fork is killed, which its parent sees. */
#define SECONDS_MAX 300
#define N_FORKS 20

static uint32_t model;
static aclmdlDesc *desc;
static aclmdlDataset *inputs;
static aclmdlDataset *outputs;
static void *memory;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_ending;
static int n_runs;

static void prepare(const char *path, const char *input)
{
    size_t size = 0;
    unsigned char *bytes = read_file(input, &size);
    MUST(aclmdlLoadFromFile(path, &model));
    desc = aclmdlCreateDesc();
    MUST(aclmdlGetDesc(desc, model));
    inputs = aclmdlCreateDataset();
    outputs = aclmdlCreateDataset();
    MUST(aclmdlAddDatasetBuffer(inputs, aclCreateDataBuffer(bytes, size)));
    size = aclmdlGetOutputSizeByIndex(desc, 0);
    MUST(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclmdlAddDatasetBuffer(outputs, aclCreateDataBuffer(memory, size)));
}

static void *run_until_told(void *unused)
{
    int goes_on = 1;
    while (goes_on) {
        MUST(aclmdlExecute(model, inputs, outputs));
        pthread_mutex_lock(&mutex);
        n_runs++;
        goes_on = !is_ending;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

/* A fork has none of the parent's objects: every call returns, and none blocks. */
static void find_nothing(void)
{
    alarm(SECONDS_MAX);
    TRUE_OR_EXIT(aclmdlExecute(model, inputs, outputs) == (aclError)ACL_ERROR_GE_EXEC_NOT_INIT);
    TRUE_OR_EXIT(aclmdlUnload(model) != ACL_SUCCESS);
    TRUE_OR_EXIT(aclmdlGetNumInputs(desc) == 0);
    TRUE_OR_EXIT(aclmdlGetDatasetNumBuffers(inputs) == 0);
    TRUE_OR_EXIT(aclrtFree(memory) != ACL_SUCCESS);
    TRUE_OR_EXIT(acldumpGetPath(DATA_DUMP) == NULL);
    TRUE_OR_EXIT(aclmdlInitDump() == ACL_ERROR_UNINITIALIZE);
    TRUE_OR_EXIT(aclmdlFinalizeDump() == ACL_ERROR_UNINITIALIZE);
    TRUE_OR_EXIT(aclGetRecentErrMsg() != NULL);
    aclmdlExecConfigHandle *options = aclmdlCreateExecConfigHandle();
    MUST(aclmdlDestroyExecConfigHandle(options));
}

static void wait_for(pid_t child)
{
    int status = 0;
    TRUE_OR_EXIT(child > 0 && waitpid(child, &status, 0) == child);
    TRUE_OR_EXIT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(int argc, char **argv)
{
    TRUE_OR_EXIT(argc == 5);
    MUST(aclInit(NULL));
    MUST(aclmdlInitDump());
    MUST(aclmdlSetDump(argv[2]));
    prepare(argv[1], argv[3]);

    pthread_t thread;
    TRUE_OR_EXIT(pthread_create(&thread, NULL, run_until_told, NULL) == 0);
    for (int i = 0; i < N_FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            find_nothing();
            exit(7);
        }
        wait_for(child);
    }
    pthread_mutex_lock(&mutex);
    is_ending = 1;
    pthread_mutex_unlock(&mutex);
    TRUE_OR_EXIT(pthread_join(thread, NULL) == 0);

    pid_t child = fork();
    if (child == 0) {
        find_nothing();
        MUST(aclInit(NULL));
        MUST(aclmdlInitDump());
        MUST(aclmdlSetDump(argv[4]));
        run_model(argv[1], argv[3], 2);
        /* Handles of the parent's objects are invalid here. */
        TRUE_OR_EXIT(aclmdlGetNumInputs(desc) == 0);
        MUST(aclmdlFinalizeDump());
        MUST(aclFinalize());
        exit(7);
    }
    wait_for(child);
    MUST(aclmdlExecute(model, inputs, outputs));
    MUST(aclmdlFinalizeDump());
    MUST(aclFinalize());
    printf("%d\n", n_runs + 1);
    return 0;
}
