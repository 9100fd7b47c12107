// The headers as a C++ compiler sees them: the same program.
#include "layout.c"
