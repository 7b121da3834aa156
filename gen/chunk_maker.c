/* chunk_maker: a program of the build: compiles the library's .lua files and prints the table of chunks.h as C.
 *
 *     chunk_maker templates pairs/mask.cu families/naive.lua ...        the rows of templates.h, in their order */
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define ROWS_MOST 1024 /* arguments, with the program's name */

static int put(lua_State *L, const void *bytes, size_t n, void *size)
{
    (void)L;
    for (size_t i = 0; i < n; i++)
        printf("%u,%s", ((const unsigned char *)bytes)[i], (*(size_t *)size + i) % 32 == 31 ? "\n" : "");
    *(size_t *)size += n;
    return 0;
}

/* Prints the bytes of one, with the numbers of its lines and the names of its locals, which error messages have. Returns how many. */
static size_t compile(lua_State *L, const char *dir, const char *name, int row)
{
    char path[4096], chunk[80];
    static char text[1 << 20];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(chunk, sizeof chunk, "@templates/%s", name);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    if (!f || n == sizeof text)
        fprintf(stderr, "%s cannot be read\n", path);
    else if (luaL_loadbufferx(L, text, n, chunk, "t") != LUA_OK)
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    else {
        printf("static const unsigned char chunk%d[] = {\n", row);
        lua_dump(L, put, &size, 0);
        printf("};\n");
    }
    lua_settop(L, 0);
    return size;
}

int main(int n, char **arg)
{
    static size_t size[ROWS_MOST];
    lua_State *L = luaL_newstate();
    if (!L || n < 3 || n > ROWS_MOST) {
        fprintf(stderr, "chunk_maker: %d arguments; accepted: a folder and up to %d files\n", n - 1, ROWS_MOST - 2);
        return 2;
    }
    printf("/* Made by gen/chunk_maker.c from templates/. */\n#include \"chunks.h\"\n\n");
    for (int i = 2; i < n; i++) {
        const char *dot = strrchr(arg[i], '.');
        if (dot && !strcmp(dot, ".lua") && !(size[i] = compile(L, arg[1], arg[i], i)))
            return 1;
    }
    lua_close(L);
    printf("\nconst fa_template_chunk fa_template_chunks[] = {\n");
    for (int i = 2; i < n; i++)
        if (size[i])
            printf("    { (const char *)chunk%d, %zu },\n", i, size[i]);
        else
            printf("    { 0, 0 },\n");
    printf("};\n");
    return fflush(stdout) ? 1 : 0;
}
