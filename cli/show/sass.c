/* sass: machine code as text, by NVIDIA's disassembler where it is installed. */
#include "cli/text/progress.h"
#include "gen/error.h"
#include "kernel_report.h"
#include "runtime/build/parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name, *argument;
} tools[] = { { "nvdisasm", "-c" }, { "cuobjdump", "-sass" } };

static bool runs(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* In PATH, then in CUDA_HOME, else in the usual place of a toolkit. */
static bool find(const char *name, char *out, size_t n)
{
    const char *path = getenv("PATH"), *home = getenv("CUDA_HOME");
    for (const char *p = path ? path : ""; *p; p += strcspn(p, ":"), p += *p != 0)
        if (*p == '/' && snprintf(out, n, "%.*s/%s", (int)strcspn(p, ":"), p, name) < (int)n && runs(out))
            return true;
    return snprintf(out, n, "%s/bin/%s", home && home[0] ? home : "/usr/local/cuda", name) < (int)n && runs(out);
}

/* What the tool writes to its standard output. */
static fa_status collect(const char *tool, const char *argument, const char *file, fa_text *out)
{
    int ends[2], status = 0;
    char buf[65536];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fa_fail(FA_IO, "%s: %s", tool, strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        cli_interrupt_child();
        execl(tool, tool, argument, file, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t n; pid > 0 && ((n = read(ends[0], buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR));)
        if (n > 0)
            fa_text_add(out, buf, (size_t)n);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
        return fa_fail(FA_IO, "%s %s: %s", tool, argument, pid < 0 ? strerror(errno) : "it failed");
    return out->oom ? fa_fail(FA_NOMEM, "no memory for what %s says", tool) : FA_OK;
}

static fa_status disassemble(const char *tool, const char *argument, const fa_part *cubin, fa_text *out)
{
    char file[] = "/tmp/fagen-XXXXXX.cubin";
    int fd = mkostemps(file, 6, O_CLOEXEC);
    if (fd < 0)
        return fa_fail(FA_IO, "%s: %s", file, strerror(errno));
    bool whole = write(fd, cubin->bytes, cubin->size) == (ssize_t)cubin->size;
    whole = close(fd) == 0 && whole;
    fa_status st = whole ? collect(tool, argument, file, out) : fa_fail(FA_IO, "%s: cannot be written: %s", file, strerror(errno));
    unlink(file);
    return st;
}

fa_status cli_sass(const char *image, size_t n, fa_text *out, bool *missing)
{
    char tool[4096];
    fa_part part[FA_SOURCE_STEPS];
    fa_status st = FA_OK;
    size_t i = 0;
    while (i < sizeof tools / sizeof *tools && !find(tools[i].name, tool, sizeof tool))
        i++;
    *missing = i == sizeof tools / sizeof *tools;
    if (*missing)
        return fa_fail(FA_IO, "--sass: neither nvdisasm nor cuobjdump was found in PATH or in bin of CUDA_HOME (else /usr/local/cuda); "
                              "accepted: one of them, "
                              "from a CUDA toolkit, or --ptx");
    int parts = fa_parts_of(image, n, part, FA_SOURCE_STEPS);
    for (int k = 0; k < parts && st == FA_OK; k++)
        st = disassemble(tool, tools[i].argument, &part[k], out);
    return st;
}
