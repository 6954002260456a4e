/* Thirty functions of which no statement needs a variable that the one before has just used: at -O0 each stores its
   arguments, and no basic block loads one of them twice. */
#define CAT(a, b) a##b
#define NAME(n) CAT(f, n)
int out(int);
#define FUNCTION(n)                             \
    int NAME(n)(int a, int b) {                 \
        int s = 0;                              \
        for (int k = 0; k < a; k++) s += k * b; \
        out(n);                                 \
        return s;                               \
    }
#define TEN(n) FUNCTION(CAT(n, 0)) FUNCTION(CAT(n, 1)) FUNCTION(CAT(n, 2)) FUNCTION(CAT(n, 3)) FUNCTION(CAT(n, 4)) \
    FUNCTION(CAT(n, 5)) FUNCTION(CAT(n, 6)) FUNCTION(CAT(n, 7)) FUNCTION(CAT(n, 8)) FUNCTION(CAT(n, 9))
TEN(1) TEN(2) TEN(3)
