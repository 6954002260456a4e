/* The lookup that somebody compiled without optimization. */
static const unsigned table[8] = { 1, 3, 9, 27, 81, 243, 729, 2187 };

static unsigned mix(unsigned state, unsigned char byte)
{
    return (state << 5 | state >> 27) ^ byte * table[byte & 7];
}

int lookup(const char *key, int length)
{
    unsigned state = 0x811c9dc5;
    for (int i = 0; i < length; i++) state = mix(state, key[i]);
    return (int)(state & 0x7fffffff);
}
