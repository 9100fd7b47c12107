/* Reads a file into memory. */
#ifndef FILE_H
#define FILE_H

#include "check.h"

static unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    TRUE_OR_EXIT(file != NULL);
    TRUE_OR_EXIT(fseek(file, 0, SEEK_END) == 0);
    long end = ftell(file);
    TRUE_OR_EXIT(end > 0);
    rewind(file);
    unsigned char *bytes = (unsigned char *)malloc((size_t)end);
    TRUE_OR_EXIT(bytes != NULL);
    TRUE_OR_EXIT(fread(bytes, 1, (size_t)end, file) == (size_t)end);
    fclose(file);
    *size = (size_t)end;
    return bytes;
}

#endif
