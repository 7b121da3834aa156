/* driver: replays the seeds of a folder and then seeded mutations of them, where there is no libFuzzer. The same numbers give the
 * same inputs. An input that crashes, or takes longer than the alarm, is left as ./finding-TARGET.
 *
 *   fuzz_NAME [-runs=N] [-seed=S] folder|file...      defaults: 2000 mutations, seed 1 */
#include "fuzz.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST 65536   /* of a mutated input */
#define HANG_SECONDS 60 /* no input takes a hundredth of that */

typedef struct bytes {
    uint8_t *s;
    size_t n;
} bytes;

static bytes *seed;
static size_t seeds;
static uint64_t state;
static uint8_t input[LONGEST];
static const uint8_t *running;
static size_t running_size;
static const char *target;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t below(size_t n)
{
    return n ? (size_t)(next() % n) : 0;
}

/* Only what may run inside a signal handler. */
static void leave_finding(void)
{
    char name[128] = "finding-";
    strncat(name, target, 100);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, running, running_size) != (ssize_t)running_size)
        return;
    close(fd);
    const char *const words[] = { "\nfuzz: the input is in ./", name, "\n" };
    for (int i = 0; i < 3; i++)
        if (write(STDERR_FILENO, words[i], strlen(words[i])) < 0)
            return;
}

static void on_signal(int sig)
{
    leave_finding();
    signal(sig, SIG_DFL);
    raise(sig == SIGALRM ? SIGABRT : sig);
}

/* A sanitizer ends the process without a signal. */
void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static void run(const uint8_t *s, size_t n)
{
    running = s;
    running_size = n;
    alarm(HANG_SECONDS);
    LLVMFuzzerTestOneInput(s, n);
    alarm(0);
}

static void add_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "fuzz: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    bytes b = { malloc((size_t)st.st_size + 1), (size_t)st.st_size };
    seed = realloc(seed, (seeds + 1) * sizeof *seed);
    if (!b.s || !seed || read(fd, b.s, b.n) != (ssize_t)b.n) {
        fprintf(stderr, "fuzz: %s cannot be read\n", path);
        exit(1);
    }
    seed[seeds++] = b;
    close(fd);
}

static void add(const char *path)
{
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort); /* one order on every file system */
    if (n < 0) {
        add_file(path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            add_file(file);
        free(names[i]);
    }
    free(names);
}

static const char *const words[] = {
    "-1",
    "0",
    "1",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1e999",
    "nan",
    "0x7fffffff",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ";",
    "\\",
    "\n",
    "\\u0000",
    "$(",
    "//|",
    "%",
    ":",
    "=",
    "\xff\xff\xff\xff",
    "\xff\xff\xff\x7f",
    "<1048576>",
};

/* One change of input[0..n); the new size. */
static size_t change(size_t n)
{
    size_t at = below(n + 1), len = 1 + below(next() % 4 ? 8 : 256), from = below(n);
    const char *w = words[below(sizeof words / sizeof *words)];
    const bytes *other = &seed[below(seeds)];
    const uint8_t *take;
    switch (next() % 9) {
    case 0: /* a bit */
        if (n)
            input[from] ^= (uint8_t)(1u << below(8));
        return n;
    case 1: /* a byte */
        if (n)
            input[from] = (uint8_t)next();
        return n;
    case 2: /* a little-endian number */
        for (size_t i = 0; i < 1u << below(4) && from + i < n; i++)
            input[from + i] = (uint8_t)(next() % 3 ? 0xff : 0);
        return n;
    case 3: /* cut out */
        len = len < n - from ? len : n - from;
        memmove(input + from, input + from + len, n - from - len);
        return n - len;
    case 4: /* cut short */
        return at;
    case 5: /* a word */
        take = (const uint8_t *)w;
        len = strlen(w);
        break;
    case 6: /* a piece of another seed */
        from = below(other->n);
        take = other->s + from;
        len = len < other->n - from ? len : other->n - from;
        break;
    case 7: { /* a piece of itself, once more */
        static uint8_t piece[256];
        len = len < n - from ? len : n - from;
        memcpy(piece, input + from, len);
        take = piece;
        break;
    }
    default: { /* noise */
        static uint8_t noise[256];
        for (size_t i = 0; i < len; i++)
            noise[i] = (uint8_t)next();
        take = noise;
    }
    }
    if (n + len > LONGEST)
        return n;
    memmove(input + at + len, input + at, n - at);
    memcpy(input + at, take, len);
    return n + len;
}

int main(int argc, char **argv)
{
    long runs = 2000;
    const char *slash = strrchr(argv[0], '/');
    target = slash ? slash + 1 : argv[0];
    state = 1;
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "-runs=", 6))
            runs = strtol(argv[i] + 6, NULL, 10);
        else if (!strncmp(argv[i], "-seed=", 6))
            state = strtoull(argv[i] + 6, NULL, 10);
        else
            add(argv[i]);
    if (!seeds || !state) {
        fprintf(stderr, "usage: %s [-runs=N] [-seed=S, not 0] folder-of-seeds...\n", argv[0]);
        return 2;
    }
    state *= 0x9e3779b97f4a7c15u;
    const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM };
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(leave_finding);
    for (size_t i = 0; i < seeds; i++)
        run(seed[i].s, seed[i].n);
    for (long i = 0; i < runs; i++) {
        const bytes *from = &seed[below(seeds)];
        size_t n = from->n < LONGEST ? from->n : LONGEST;
        memcpy(input, from->s, n);
        for (size_t changes = 1 + below(6); changes; changes--)
            n = change(n);
        uint8_t *exact = malloc(n + 1); /* of its own size: a sanitizer sees the first byte past it */
        if (!exact)
            return 1;
        memcpy(exact, input, n);
        run(exact, n);
        free(exact);
    }
    printf("%s: %zu seeds, %ld mutations\n", target, seeds, runs);
    for (size_t i = 0; i < seeds; i++)
        free(seed[i].s);
    free(seed);
    return 0;
}
