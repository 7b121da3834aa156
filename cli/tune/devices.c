/* devices: a list of devices that share one work. */
#include "devices.h"
#include "gen/error.h"
#include "runtime/context/device.h"
#include "runtime/context/driver_cuda.h"
#include <stdio.h>
#include <string.h>

static fa_status gpus(cli_devices *out)
{
    const cu_driver *driver;
    fa_device first, d;
    int count = 0;
    fa_status st = fa_driver_cuda(&driver);
    if (st == FA_OK)
        st = fa_device_open_on(&first, driver, 0);
    if (st == FA_OK && driver->cuDeviceGetCount(&count) != CUDA_SUCCESS)
        st = fa_fail(FA_NO_DRIVER, "%s: the devices cannot be counted", driver->name);
    for (int i = 0; st == FA_OK && i < count && out->n < CLI_DEVICES_MOST; i++) {
        size_t at = strlen(out->left_out);
        if (fa_device_open_on(&d, driver, i) == FA_OK && !strcmp(d.arch.chip, first.arch.chip))
            snprintf(out->name[out->n++], sizeof out->name[0], "cuda:%d", i);
        else
            snprintf(out->left_out + at, sizeof out->left_out - at, "%scuda:%d", at ? ", " : "", i);
    }
    return st;
}

size_t cli_devices_alike(void)
{
    cli_devices all = { .n = 0 };
    return gpus(&all) == FA_OK ? all.n : 0;
}

bool cli_devices_gpu(cli_devices *out, const char *name, const char *arch)
{
    fa_device d;
    *out = (cli_devices){ .n = 0 };
    if (strncmp(name, "cuda", 4) != 0 || fa_device_open(&d, name) != FA_OK || (arch && strcmp(arch, d.arch.name) != 0))
        return false;
    snprintf(out->name[out->n++], sizeof out->name[0], "cuda:%d", d.ordinal);
    return true;
}

static fa_status add(cli_devices *out, const char *text, size_t n)
{
    char word[sizeof out->name[0]];
    bool number = n > 0 && n == strspn(text, "0123456789") && n < 6;
    int len = snprintf(word, sizeof word, "%s%.*s", number ? "cuda:" : "", (int)n, text);
    if (!n || len >= (int)sizeof word || (strncmp(word, "cuda:", 5) && strncmp(word, "sim:", 4)))
        return fa_fail(FA_INVALID, "--devices holds \"%.*s\"; accepted: all, or a list of numbers of GPUs, cuda:N, sim:ARCH",
                       n < 60 ? (int)n : 60, text);
    for (size_t i = 0; i < out->n; i++)
        if (word[0] == 'c' && !strcmp(out->name[i], word))
            return fa_fail(FA_INVALID, "--devices holds %s twice; accepted: each GPU once", word);
    if (out->n == CLI_DEVICES_MOST)
        return fa_fail(FA_INVALID, "--devices holds more than %d devices", CLI_DEVICES_MOST);
    strcpy(out->name[out->n++], word);
    return FA_OK;
}

fa_status cli_devices_read(cli_devices *out, const char *text)
{
    fa_device first, d;
    fa_status st = FA_OK;
    *out = (cli_devices){ .n = 0 };
    if (!strcmp(text, "all"))
        return gpus(out);
    for (;; text++) {
        size_t n = strcspn(text, ",");
        if ((st = add(out, text, n)) != FA_OK || !text[n])
            break;
        text += n;
    }
    for (size_t i = 0; st == FA_OK && i < out->n; i++) {
        if (!strncmp(out->name[0], "sim:", 4) != !strncmp(out->name[i], "sim:", 4)) /* also where there is no GPU to ask */
            return fa_fail(FA_INVALID, "--devices: %s and %s are different chips; accepted: devices of one chip", out->name[0],
                           out->name[i]);
        st = fa_device_open(i ? &d : &first, out->name[i]);
        if (st != FA_OK)
            return st == FA_INVALID ? fa_wrap(st, "--devices") : st;
        if (i && strcmp(first.arch.chip, d.arch.chip))
            return fa_fail(FA_INVALID, "--devices: %s is %s, %s is %s; accepted: devices of one chip", out->name[0], first.arch.chip,
                           out->name[i], d.arch.chip);
    }
    return st;
}
