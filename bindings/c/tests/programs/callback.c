/*
 * Receives a dump in a callback: callback MODEL CONFIG INPUT DIR. The chunks of each file are assembled
 * in DIR, under the file's base name; the names are printed.
 */
#include <string.h>

#include "session.h"

static const char *dir;

static int32_t take(const acldumpChunk *chunk, int32_t len)
{
    char path[8192];
    TRUE_OR_EXIT(len >= 0 && (size_t)len == sizeof(acldumpChunk) + chunk->bufLen);
    TRUE_OR_EXIT(chunk->bufLen > 0);
    TRUE_OR_EXIT(chunk->offset == -1);
    TRUE_OR_EXIT(chunk->isLastChunk <= 1);
    TRUE_OR_EXIT(chunk->fileName[0] == '/');
    const char *name = strrchr(chunk->fileName, '/') + 1;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "ab");
    TRUE_OR_EXIT(file != NULL);
    TRUE_OR_EXIT(fwrite(chunk->dataBuf, 1, chunk->bufLen, file) == chunk->bufLen);
    TRUE_OR_EXIT(fclose(file) == 0);
    if (chunk->isLastChunk == 1) {
        printf("%s\n", chunk->fileName);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    TRUE_OR_EXIT(argc == 5);
    dir = argv[4];
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(acldumpRegCallback(take, 0));
    MUST(aclmdlInitDump());
    MUST(aclmdlSetDump(argv[2]));
    run_model(argv[1], argv[3], 1);
    MUST(aclmdlFinalizeDump());
    acldumpUnregCallback();
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return 0;
}
