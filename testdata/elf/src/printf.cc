#include <cstdio>
int main(int count, char **arguments) {
    std::printf("%s %d\n", arguments[0], count);
    return 0;
}
