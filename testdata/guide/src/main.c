/* A program of two files: built with -O2, but for src/lookup/table.c in the bad build. */
int lookup(const char *key, int length);

int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 1; i < argc; i++) {
        int length = 0;
        while (argv[i][length]) length++;
        sum += lookup(argv[i], length);
    }
    return sum & 1;
}
