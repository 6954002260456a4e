#ifdef FILE_x
int x0f(int p, int q, int r)
{
    int s = p * q, t = r + 0;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int x1f(int p, int q, int r)
{
    int s = p * q, t = r + 1;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int x2f(int p, int q, int r)
{
    int s = p * q, t = r + 2;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int x3f(int p, int q, int r)
{
    int s = p * q, t = r + 3;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int x4f(int p, int q, int r)
{
    int s = p * q, t = r + 4;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int x5f(int p, int q, int r)
{
    int s = p * q, t = r + 5;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
#endif
#ifdef FILE_y
int y0f(int p, int q, int r)
{
    int s = p * q, t = r + 0;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int y1f(int p, int q, int r)
{
    int s = p * q, t = r + 1;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int y2f(int p, int q, int r)
{
    int s = p * q, t = r + 2;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int y3f(int p, int q, int r)
{
    int s = p * q, t = r + 3;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int y4f(int p, int q, int r)
{
    int s = p * q, t = r + 4;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
int y5f(int p, int q, int r)
{
    int s = p * q, t = r + 5;
    for (int k = 0; k < p; k++) {
        s += k * t;
        t ^= s;
    }
    return s - t + q;
}
#endif
#ifdef FILE_a
int x0f(int, int, int), x1f(int, int, int), x2f(int, int, int), x3f(int, int, int), x4f(int, int, int), x5f(int, int, int);
int y0f(int, int, int), y1f(int, int, int), y2f(int, int, int), y3f(int, int, int), y4f(int, int, int), y5f(int, int, int);
int b0(const int *p, int q)
{
    int s = 0;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x0f(s, q, 0) : s;
}
int b1(const int *p, int q)
{
    int s = 1;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y1f(s, q, 1) : s;
}
int b2(const int *p, int q)
{
    int s = 2;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x2f(s, q, 2) : s;
}
int b3(const int *p, int q)
{
    int s = 3;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y3f(s, q, 3) : s;
}
int b4(const int *p, int q)
{
    int s = 4;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x4f(s, q, 4) : s;
}
int b5(const int *p, int q)
{
    int s = 5;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y5f(s, q, 5) : s;
}
int b6(const int *p, int q)
{
    int s = 6;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x0f(s, q, 6) : s;
}
int b7(const int *p, int q)
{
    int s = 7;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y1f(s, q, 7) : s;
}
int b8(const int *p, int q)
{
    int s = 8;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x2f(s, q, 8) : s;
}
int b9(const int *p, int q)
{
    int s = 9;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y3f(s, q, 9) : s;
}
int b10(const int *p, int q)
{
    int s = 10;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x4f(s, q, 10) : s;
}
int b11(const int *p, int q)
{
    int s = 11;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y5f(s, q, 11) : s;
}
int b12(const int *p, int q)
{
    int s = 12;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x0f(s, q, 12) : s;
}
int b13(const int *p, int q)
{
    int s = 13;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y1f(s, q, 13) : s;
}
int b14(const int *p, int q)
{
    int s = 14;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x2f(s, q, 14) : s;
}
int b15(const int *p, int q)
{
    int s = 15;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y3f(s, q, 15) : s;
}
int b16(const int *p, int q)
{
    int s = 16;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x4f(s, q, 16) : s;
}
int b17(const int *p, int q)
{
    int s = 17;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y5f(s, q, 17) : s;
}
int b18(const int *p, int q)
{
    int s = 18;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? x0f(s, q, 18) : s;
}
int b19(const int *p, int q)
{
    int s = 19;
    for (int k = 0; k < q; k++)
        s += p[k] * k;
    return s > 100 ? y1f(s, q, 19) : s;
}
int main(int c)
{
    int z[4] = {1, 2, 3, c};
    return b0(z, c & 3) + b1(z, c & 3) + b2(z, c & 3) + b3(z, c & 3) + b4(z, c & 3) + b5(z, c & 3) + b6(z, c & 3) + b7(z, c & 3) + b8(z, c & 3) + b9(z, c & 3) + b10(z, c & 3) + b11(z, c & 3) + b12(z, c & 3) + b13(z, c & 3) + b14(z, c & 3) + b15(z, c & 3) + b16(z, c & 3) + b17(z, c & 3) + b18(z, c & 3) + b19(z, c & 3) + x0f(c, 0, 3) + x1f(c, 1, 3) + x2f(c, 2, 3) + x3f(c, 3, 3) + x4f(c, 4, 3) + x5f(c, 5, 3) + y0f(c, 0, 3) + y1f(c, 1, 3) + y2f(c, 2, 3) + y3f(c, 3, 3) + y4f(c, 4, 3) + y5f(c, 5, 3);
}
#endif
