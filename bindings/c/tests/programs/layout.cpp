// The same program, with the headers compiled as C++.
#include "layout.c"
