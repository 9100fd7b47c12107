/*
 * Makes the calls listed on standard input, one per line: the function, a TAB, its arguments separated by
 * TABs. `-` is NULL. Prints the result of each call: a number, or `null` or `text` for a pointer.
 */
#include <string.h>

#include "check.h"

static int32_t first(const acldumpChunk *chunk, int32_t len)
{
    (void)chunk;
    (void)len;
    return 0;
}

static int32_t second(const acldumpChunk *chunk, int32_t len)
{
    (void)chunk;
    (void)len;
    return 1;
}

typedef int32_t (*Callback)(const acldumpChunk *, int32_t);

static Callback callback_of(const char *name)
{
    if (name == NULL) {
        return NULL;
    }
    return strcmp(name, "@CB2@") == 0 ? second : first;
}

static void call(const char *function, const char *argument, const char *flag)
{
    if (strcmp(function, "aclInit") == 0) {
        printf("%d\n", aclInit(argument));
    } else if (strcmp(function, "aclFinalize") == 0) {
        printf("%d\n", aclFinalize());
    } else if (strcmp(function, "aclFinalizeReference") == 0) {
        uint64_t n_left = 0;
        printf("%d\n", aclFinalizeReference(argument == NULL ? NULL : &n_left));
    } else if (strcmp(function, "aclmdlInitDump") == 0) {
        printf("%d\n", aclmdlInitDump());
    } else if (strcmp(function, "aclmdlSetDump") == 0) {
        printf("%d\n", aclmdlSetDump(argument));
    } else if (strcmp(function, "aclmdlFinalizeDump") == 0) {
        printf("%d\n", aclmdlFinalizeDump());
    } else if (strcmp(function, "acldumpGetPath") == 0) {
        TRUE_OR_EXIT(argument != NULL && strcmp(argument, "DATA_DUMP") == 0);
        printf("%s\n", acldumpGetPath(DATA_DUMP) == NULL ? "null" : "text");
    } else if (strcmp(function, "acldumpRegCallback") == 0) {
        printf("%d\n", acldumpRegCallback(callback_of(argument), (int32_t)strtol(flag, NULL, 10)));
    } else if (strcmp(function, "acldumpUnregCallback") == 0) {
        acldumpUnregCallback();
        printf("null\n");
    } else {
        fprintf(stderr, "the function %s is unknown\n", function);
        exit(1);
    }
}

int main(void)
{
    char line[8192];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *fields[3] = {NULL, NULL, NULL};
        size_t n = 0;
        line[strcspn(line, "\n")] = '\0';
        for (char *field = strtok(line, "\t"); field != NULL && n < 3; field = strtok(NULL, "\t")) {
            fields[n++] = strcmp(field, "-") == 0 ? NULL : field;
        }
        TRUE_OR_EXIT(fields[0] != NULL);
        call(fields[0], fields[1], fields[2] == NULL ? "0" : fields[2]);
    }
    return 0;
}
