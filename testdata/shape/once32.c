/* Thirty functions whose arguments come on the stack (i386) and that name each of them once: at -O0 nothing is stored at
   their entries, and nothing is loaded twice. */
#define CAT(a, b) a##b
#define NAME(n) CAT(f, n)
int out(int);
#define FUNCTION(n)                  \
    int NAME(n)(int a, int b) {      \
        if (a <= n) return b;        \
        out(n);                      \
        return out(b) + out(a);      \
    }
#define TEN(n) FUNCTION(CAT(n, 0)) FUNCTION(CAT(n, 1)) FUNCTION(CAT(n, 2)) FUNCTION(CAT(n, 3)) FUNCTION(CAT(n, 4)) \
    FUNCTION(CAT(n, 5)) FUNCTION(CAT(n, 6)) FUNCTION(CAT(n, 7)) FUNCTION(CAT(n, 8)) FUNCTION(CAT(n, 9))
TEN(1) TEN(2) TEN(3)
