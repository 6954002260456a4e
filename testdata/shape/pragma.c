/* What shapes.c holds, unoptimized whatever the command line says. */
#ifdef __clang__
#pragma clang optimize off
#else
#pragma GCC optimize("O0")
#endif
#include "shapes.c"
