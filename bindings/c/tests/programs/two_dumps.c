/*
 * Dumps two models with a configuration for each: two_dumps MODEL_1 CONFIG_1 MODEL_2 CONFIG_2 INPUT.
 * A run between the two, and one after them, must leave no files.
 */
#include "session.h"

int main(int argc, char **argv)
{
    TRUE_OR_EXIT(argc == 6);
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));

    MUST(aclmdlInitDump());
    MUST(aclmdlSetDump(argv[2]));
    const char *path = acldumpGetPath(DATA_DUMP);
    TRUE_OR_EXIT(path != NULL);
    printf("%s\n", path);
    run_model(argv[1], argv[5], 2);
    MUST(aclmdlFinalizeDump());
    TRUE_OR_EXIT(acldumpGetPath(DATA_DUMP) == NULL);

    run_model(argv[1], argv[5], 1);

    MUST(aclmdlInitDump());
    MUST(aclmdlSetDump(argv[4]));
    path = acldumpGetPath(DATA_DUMP);
    TRUE_OR_EXIT(path != NULL);
    printf("%s\n", path);
    run_model(argv[3], argv[5], 1);
    MUST(aclmdlFinalizeDump());

    run_model(argv[3], argv[5], 1);
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
