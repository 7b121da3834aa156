/* Scripts that want more than a template may have: each ends in an error, within half a second of processor time and 64 MiB, and
 * the same generator goes on as if nothing had been. What limits them is in gen/sandbox.c: no clock of this suite decides. By default
 * one in sixteen of the templates that use up all steps are run, and every second of those that use up memory; with FAGEN_TEST_FULL=1
 * all. */
#include "gen/family.h"
#include "test_full.h"
#include "test_gen_toy.h"
#include <sys/resource.h>
#include <time.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MEMORY (64 << 20)
#define MOST_SECONDS 30.0 /* of processor time for one script, on the slowest host: what is not limited takes hours */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SLOW true /* the time limit may come before the one that a script is meant to meet */
#else
#define SLOW false
#endif

typedef struct attack {
    const char *script, *says; /* a part of the message */
} attack;

/* Run in the .cu of a family, where c.br == 16. */
static const attack in_template[] = {
    /* loops and recursion */
    { "while true do end", "step limit" },
    { "repeat until false", "step limit" },
    { "::a:: goto a", "step limit" },
    { "for i = 1, math.maxinteger do end", "step limit" },
    { "for i = math.mininteger, math.maxinteger, 1 do end", "step limit" },
    { "for i = 1, math.huge do end", "step limit" },
    { "for i = 1.0, 2^53, 0.0000001 do end", "step limit" },
    { "for i = 1, 10, 0 do end", "'for' step is zero" },
    { "local function f() return f() end f()", "step limit" },
    { "local function f() return 1 + f() end f()", "nested more than" },
    { "local function f(...) return f(1, ...) end f()", "limit" },
    { "local function f(x) return { f(x) } end f(1)", "nested more than" },
    { "local s = 'return 1' for i = 1, 250 do s = '(' .. s end load(s)", "undefined name 'load'" },
    { "local function f() for _, x in ipairs({ 1 }) do f() end end f()", "nested more than" },
    { "table.sort({ 3, 1, 2 }, function(a, b) while true do end end)", "step limit" },
    { "local s = ('x'):gsub('x', function() while true do end end)", "step limit" },
    { "local function f() return (('x'):gsub('x', f)) end f()", "C stack overflow" },
    { "for k in ('xx'):gmatch('x') do while true do end end", "step limit" },
    { "include 'toy.cu'", "more than 16 deep" },
    /* memory */
    { "local s = ('x'):rep(1 << 40)", "too large" },
    { "local s = ('x'):rep(1 << 62, 'yy')", "too large" },
    { "local s = ('x'):rep(-1 >> 1)", "too large" },
    { "local s = ('x'):rep(1 << 30)", "memory limit" },
    { "local s = 'x' for i = 1, 100 do s = s .. s end", "memory limit" },
    { "local t = {} for i = 1, 1 << 40 do t[i] = i end", "memory limit" },
    { "local t = {} for i = 1, 1 << 40 do t['k' .. i] = i end", "limit" },
    { "local t = {} for i = 1, 1 << 40 do t = { t } end", "memory limit" },
    { "local t = {} for i = 1, 1 << 40 do t[i] = function() return i end end", "memory limit" },
    { "local t = {} for i = 1, 1 << 40 do t[i] = 'a fairly long string, number ' .. i end", "memory limit" },
    { "local t = {} while true do t[#t + 1] = {} end", "memory limit" },
    { "for i = 1, 1 << 40 do local s = ('x'):rep(1 << 23) end", "limit" },
    { "local s = (('x'):rep(1 << 20):gsub('x', ('y'):rep(1 << 10)))", "limit" },
    { "local s = (('x'):rep(1 << 22):gsub('', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'))", "limit" },
    { "local s = ('x'):rep(1 << 20):gsub('.', { x = ('y'):rep(1 << 16) })", "limit" },
    { "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(1 << 12) end local u = {} for i = 1, 1000 do u[i] = table.concat(t) end", "limit" },
    { "local t = table.concat({ 1, 2 }, ('x'):rep(1 << 23)) t = t .. t .. t", "memory limit" },
    { "local s = string.format(('%99d'):rep(1 << 16), 1)", "argument" },
    { "local s = ('%s'):rep(1 << 10) for i = 1, 1 << 30 do s = s:format(s, s) end", "argument" },
    { "local t = {} for i = 1, 20 do t = { t, t } end local function w(x) w(x[1]) w(x[2]) end w(t)", "index a nil" },
    { "local s = ('x'):rep(1 << 20) for i = 1, 1 << 30 do s = s:upper():lower():reverse() end", "limit" },
    { "local s = ('x'):rep(1 << 20) for i = 1, 1 << 30 do local u = s:sub(2) end", "limit" },
    { "local t = {} for i = 1, 1 << 40 do t[-i] = i end", "memory limit" },
    { "local t = {} for i = 1, 1 << 40 do t[i + 0.5] = i end", "memory limit" },
    { "for i = 1, 1 << 40 do n = { i, i, i, i, i, i, i, i } end", "limit" },
    /* text that is written, which Lua does not hold */
    { "while true do __line(1, 0, ('x'):rep(1 << 16)) end", "longer than" },
    { "for i = 1, 1 << 40 do __line(i % 100 + 1, 0, 'x') end", "longer than" },
    { "__line(1, 0)  __line(1, 1 << 20, 'x')", "not for scripts" },
    { "__line(1, -1, 'x')", "not for scripts" },
    { "__line(1, 1 << 32, 'x')  __line(1 << 31, 0, 'x')", "not for scripts" },
    { "__line(1, 0, {})", "string expected" },
    { "__value({}, {})", "string expected" },
    { "__value(1)  __line(1, 0, __value(nil, 'x'))", "string expected" },
    /* library calls that run no instruction */
    { "local n = ('a'):rep(40):find(('a*'):rep(40) .. 'b')", "step limit" },
    { "local n = ('a'):rep(1 << 20):match('.-b')", "step limit" },
    { "local n = ('a'):rep(1 << 20):match('(.-)%1b')", "step limit" },
    { "local n = ('('):rep(1 << 20):match(('.-'):rep(20) .. 'x')", "step limit" },
    { "local n = ('('):rep(1 << 16):find('%b()')", "step limit" },
    { "local s = ('a'):rep(1 << 16) for i = 1, 1 << 30 do local n = s:find('%f[b]') end", "step limit" },
    { "local n = ('a'):rep(1 << 16):find('[' .. ('b'):rep(1 << 16) .. ']')", "step limit" },
    { "local s, p = ('a'):rep(1 << 18), ('a'):rep(1 << 17) .. 'b' for i = 1, 1 << 30 do local n = s:find(p, 1, true) end", "limit" },
    { "for w in (('a'):rep(1 << 16)):gmatch('a*b') do end", "step limit" },
    { "local s = (('a'):rep(1 << 16)):gsub('a*b', '')", "step limit" },
    { "local s = ('x'):rep(10):gsub(('()'):rep(100), '')", "too many captures" },
    { "local s = ('a'):match(('('):rep(40))", "captures" },
    { "local s = ('a'):rep(1 << 18):match(('a?'):rep(1000) .. ('a'):rep(1000))", "too complex" },
    { "local n = ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(41))", "step limit" },
    { "local n = ('a'):rep(60):match(('a-'):rep(30) .. 'b')", "step limit" },
    { "local n = ('a'):rep(1 << 20):match(('[^b]-'):rep(4) .. 'b')", "step limit" },
    { "local n = ('x='):rep(1 << 18):gsub('(.-)=%1%1', '')", "step limit" },
    { "for w in (('a'):rep(1 << 20)):gmatch('.-b') do end", "step limit" },
    { "local s = ('a'):rep(1 << 20):gsub('.-b', '')", "step limit" },
    { "local s = ('a'):rep(3000000):gsub('', ('%0'):rep(1000000))", "step limit" },
    { "local s = ('a'):rep(3000000):gsub('()', ('%%'):rep(1000000))", "limit" },
    { "local s = ('a'):rep(3000000):gsub('a', ('%0'):rep(1000000))", "limit" },
    { "local s = ('a'):rep(3000000):gsub('', {})  while true do s = s:gsub('', {}) end", "limit" },
    { "local s = ('a'):rep(1 << 20) for i = 1, 1 << 30 do local n = s:find('b', 1, true) end", "step limit" },
    { "local s = ('a'):rep(1 << 20) for i = 1, 1 << 30 do local n = s:byte(1, -1) end", "string slice too long" },
    { "local s = ('a'):rep(1 << 19) for i = 1, 1 << 30 do local n = s:byte(1, -1) end", "step limit" },
    { "local s = ('0'):rep(1 << 22) for i = 1, 1 << 30 do local n = tonumber(s) end", "step limit" },
    { "local s = ('1'):rep(1 << 22) for i = 1, 1 << 30 do local n = tonumber(s, 2) end", "step limit" },
    { "local s = ('0'):rep(1 << 22) for i = 1, 1 << 30 do local n = s + 1 end", "time limit" },
    { "local s = ('0'):rep(1 << 22) for i = 1, 1 << 30 do for j = 1, s do end end", "" },
    { "local s = ('a'):rep(1 << 22) local u, t = s:sub(1, -2) .. 'a', {} t[s] = 1 for i = 1, 1 << 30 do local n = t[u] end", "time limit" },
    { "local s = ('a'):rep((1 << 22) + 100)", "memory limit of a string" },
    { "for i = 1, 1 << 30 do local s = string.rep('', math.maxinteger) end", "step limit" },
    { "for i = 1, 1 << 30 do local s = string.rep('', math.maxinteger, '') end", "step limit" },
    { "for i = 1, 1 << 30 do local s = ('x'):rep(1 << 20) end", "limit" },
    { "for i = 1, 1 << 30 do local s = ('x'):rep(math.mininteger) end", "step limit" },
    { "local s = ('x'):rep(math.maxinteger, ('y'):rep(1 << 20))", "too large" },
    { "local f, s = ('%.1s'):rep(8), ('x'):rep(1 << 22) for i = 1, 1 << 30 do local n = f:format(s, s, s, s, s, s, s, s) end",
      "step limit" },
    { "local f = ('x'):rep(1 << 22) .. '%' for i = 1, 1 << 30 do local n = f:format() end", "no value" },
    { "local f = ('%d'):rep(1 << 16) for i = 1, 1 << 30 do f:format(1) end", "argument" },
    { "local s = ('\\0'):rep(1 << 20) for i = 1, 1 << 30 do local n = string.format('%q', s) end", "limit" },
    { "local s = ('x'):rep(1 << 20) for i = 1, 1 << 30 do local n = s:lower() end", "limit" },
    { "local s = ('x'):rep(1 << 20) for i = 1, 1 << 30 do local n = s:reverse() end", "limit" },
    { "local s = ('x'):rep(1 << 20) for i = 1, 1 << 30 do local n = tostring(s) .. '' end", "step limit" },
    { "local s = ('x'):rep(1 << 20) for i = 1, 1 << 30 do local n = s .. i end", "limit" },
    { "local s = ('x'):rep(1 << 20) for i = 1, 1 << 30 do local n = #s:sub(2) end", "limit" },
    { "local s = ('a'):rep(1 << 22) local u = s:sub(1, -2) .. 'a' for i = 1, 1 << 30 do local n = s == u end", "time limit" },
    { "local s = ('a'):rep(1 << 22) local u = s:sub(1, -2) .. 'b' for i = 1, 1 << 30 do local n = s < u end", "time limit" },
    { "local t = {} for i = 1, 200000 do t[i] = i % 7 end for i = 1, 1 << 20 do table.sort(t) end", "step limit" },
    { "table.sort({ 1, 2, 3, 4, 5, 6, 7, 8 }, function() error 'no order' end)", "no order" },
    { "local t = {} for i = 1, 1 << 17 do t[i] = i end while true do table.sort(t, function() return true end) end", "step limit" },
    { "table.sort({ 1, 'x' })", "compare" },
    { "table.sort({ 1, 2 }, 1)", "function expected" },
    { "local a, t = ('a'):rep(1 << 21), {} local b = a .. 'b' for i = 1, 100000 do t[i] = i % 2 == 0 and a or b end table.sort(t)",
      "step limit" },
    { "local t = {} for i = 1, 200000 do t[i] = '' end for i = 1, 1 << 30 do local s = table.concat(t) end", "step limit" },
    { "local t = {} for i = 1, 200000 do t[i] = 65 end for i = 1, 1 << 30 do local s = string.char(table.unpack(t)) end", "step limit" },
    { "local t = {} for i = 1, 200000 do t[i] = i end for i = 1, 1 << 30 do local n = math.max(table.unpack(t)) end", "step limit" },
    { "local t = {} for i = 1, 200000 do t[i] = i end for i = 1, 1 << 30 do local n = math.min(table.unpack(t)) end", "step limit" },
    { "local t = {} for i = 1, 200000 do t[i] = i end for i = 1, 1 << 30 do assert(table.unpack(t)) end", "step limit" },
    { "local t = {} for i = 1, 200000 do t[i] = i end for i = 1, 1 << 30 do local n = select(2, table.unpack(t)) end", "step limit" },
    { "for i = 1, 1 << 30 do include 'flash_fwd_wgmma.lua' end", "step limit" },
    { "local s = (' '):rep(1 << 18) while true do __line(1, 0, s) end", "limit" },
    { "local t = {} for i = 1, 1 << 20 do table.insert(t, 1, i) end", "step limit" },
    { "local t = {} for i = 1, 1 << 16 do t[i] = i end while #t > 0 do table.remove(t, 1) end", "step limit" },
    { "local n = table.unpack({}, 1, 1 << 30)", "too many results" },
    { "for i = 1, 1 << 30 do local n = select('#', table.unpack({}, 1, 200000)) end", "step limit" },
    { "local function f(...) for i = 1, 1 << 30 do local n = select('#', ...) end end f(table.unpack({}, 1, 250000))", "step limit" },
    { "local function f(...) for i = 1, 1 << 30 do local t = { ... } end end f(table.unpack({}, 1, 250000))", "limit" },
    { "local function f(...) for i = 1, 1 << 30 do type(...) end end f(table.unpack({}, 1, 250000))", "time limit" },
    { "table.unpack({}, math.mininteger, math.maxinteger)", "too many results" },
    { "table.concat({}, ('x'):rep(1 << 20), 1, 1 << 40)", "invalid value" },
    { "local t = {} for i = 1, 1 << 16 do t[i] = i end for i = 1, 1 << 30 do local n = sorted(t) end", "limit" },
    { "string.char(table.unpack({}, 1, 100))", "number expected" },
    { "select(-1)", "out of range" },
    { "string.rep()", "string expected" },
    { "math.tointeger({}, 1) math.floor('x')", "number expected" },
    { "local x = 1 // 0", "divide by zero" },
    { "local x = math.mininteger // -1 + 1 % 0", "n%" },
    { "local x = f32(1e39)", "no literal" },
    { "local x = 2^53 | 0.5", "no integer representation" },
    /* what is not there */
    { "os.exit(1)", "undefined name 'os'" },
    { "io.open('/etc/passwd')", "undefined name 'io'" },
    { "io.popen('true')", "undefined name 'io'" },
    { "require 'os'", "undefined name 'require'" },
    { "package.loadlib('x', 'y')", "undefined name 'package'" },
    { "debug.getregistry()", "undefined name 'debug'" },
    { "debug.sethook()", "undefined name 'debug'" },
    { "load('return 1')()", "undefined name 'load'" },
    { "load('\\27Lua')", "undefined name 'load'" },
    { "loadstring('return 1')", "undefined name 'loadstring'" },
    { "dofile('/etc/passwd')", "undefined name 'dofile'" },
    { "string.dump(function() end)", "call a nil value" },
    { "pcall(error)", "undefined name 'pcall'" },
    { "while true do pcall(function() while true do end end) end", "undefined name 'pcall'" },
    { "xpcall(error, error)", "undefined name 'xpcall'" },
    { "coroutine.wrap(function() while true do end end)()", "undefined name 'coroutine'" },
    { "setmetatable({}, { __gc = function() while true do end end })", "undefined name 'setmetatable'" },
    { "local t <close> = setmetatable({}, { __close = error })", "undefined name 'setmetatable'" },
    { "local t <close> = {}", "non-closable" },
    { "local t <close> = nil error('x')", "x" },
    { "getmetatable('').__index = nil", "undefined name 'getmetatable'" },
    { "rawset(_G, 'x', 1)", "undefined name 'rawset'" },
    { "rawget({}, 1)", "undefined name 'rawget'" },
    { "_G.x = 1", "undefined name '_G'" },
    { "_ENV = {} x()", "call a nil value" },
    { "local _ENV <const> = nil x = 1", "index a nil value" },
    { "collectgarbage('stop')", "undefined name 'collectgarbage'" },
    { "for k in pairs({}) do end", "undefined name 'pairs'" },
    { "for k in next, {} do end", "undefined name 'next'" },
    { "print('x')", "undefined name 'print'" },
    { "math.random()", "call a nil value" },
    { "math.randomseed(1)", "call a nil value" },
    { "os.time()", "undefined name 'os'" },
    { "table.move({}, 1, 1 << 50, 2)", "call a nil value" },
    { "utf8.char(1)", "undefined name 'utf8'" },
    { "string.pack('i', 1)", "call a nil value" },
    { "tostring({})", "has no text" },
    { "tostring(error)", "has no text" },
    { "string.format('%p', 'x')", "an address" },
    { "string.format('\\0%p', 'x')", "an address" },
    { "string.format('%s', {})", "accepted: number" },
    { "sorted({ [{}] = 1 })", "accepted: numbers and strings" },
    /* errors that are none, and names that are none */
    { "error({})", "not a string" },
    { "error()", "not a string" },
    { "error(error)", "not a string" },
    { "error(('x'):rep(1 << 22))", "xxxx" },
    { "error('templates/toy.cu:999999999: x')", "toy.cu" },
    { "error('templates/toy.cu:-1: x')", "toy.cu" },
    { "error('templates/:1: x')", "x" },
    { "error('\\0templates/')", "toy.cu" },
    { "fail({})", "string expected" },
    { "include(('x'):rep(1 << 20))", "not the name of a template" },
    { "include '../../etc/passwd'", "not the name of a template" },
    { "include '/etc/passwd'", "not the name of a template" },
    { "for i = 1, 100 do include('none' .. i .. '.cu') end", "there is no template" },
    { "('x').y.z = 1", "index a nil value" },
    { "string.format = nil ('x'):y()", "call a nil value" },
    { "p.d = nil local x = p.d", "no field 'd'" },
};

/* The whole .cu: what does not even load. */
static const attack whole[] = {
    { "//| \x1bLua", "unexpected symbol" },
    { "//| goto nowhere\n", "nowhere" },
    { "//| ::a:: ::a::\n", "already defined" },
    { "//| break\n", "break" },
    { "//| local a <const> = 1 a = 2\n", "const" },
    { "//| local x <foo> = 1\n", "unknown attribute" },
    { "//| x = [==[\n", "unfinished long string" },
    { "//| x = '\\u{7fffffffff}'\n", "UTF-8" },
    { "//| x = '\\xZZ'\n", "hexadecimal" },
    { "//| return 1\nx\n", "expected" },
    { "$(\n", "not closed" },
    { "$(1) $((((((\n", "not closed" },
    { "$(x) $(\")\n", "not closed" },
    { "$(1 2)\n", "expected" },
    { "$(function() end)\n", "is a function" },
    { "$(0/0)\n", "$(0/0)" },
};

/* A text made of one piece many times: what the compiler of Lua meets, which no limit interrupts. */
static const struct {
    const char *before, *piece, *after, *says;
} repeated[] = {
    { "//| local x = ", "(", "1\n", "C stack overflow" },
    { "//| local x = ", "{", "1\n", "C stack overflow" },
    { "//| local x = ", "- ", "1\n", "C stack overflow" },
    { "//| local x = 1", "^1", "\n", "C stack overflow" },
    { "//| local x = 1", " .. 1", "\n", "" },
    { "//| ", "do ", "\n", "C stack overflow" },
    { "//| ", "function f() ", "\n", "C stack overflow" },
    { "//| while true do ", "break ", "end while true do end\n", "step limit" },
    { "//| ", "goto a ", "\n", "no visible label" },
    { "//| while true do ", "local a ", "end\n", "local variables" },
    { "//| local x = nope", " or nope", "\n", "undefined name" },
    { "//| local x = {", "1,", "} while true do end\n", "step limit" },
    { "//| local x = '", "\\z  ", "' while true do end\n", "step limit" },
    { "//| x = a", ".a", "\n", "no field" },
    { "//| f", "{}", "\n", "undefined name" },
};

static rlim_t address_space(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    cr_assert(f && fscanf(f, "%ld", &pages) == 1 && fclose(f) == 0);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* From here on this process gets so much more memory and none beyond: more than that would be FA_NOMEM. A sanitizer's own memory
 * knows no such bounds. */
static void limit_memory(void)
{
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    rlim_t most = address_space() + MEMORY;
    cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){ most, most }), 0);
#else
    (void)address_space;
#endif
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double slowest;
static const char *slowest_script = "";
static uint64_t real_hash[2];

static fa_status render(fa_gen *g, const char *config, fa_source *s)
{
    fa_problem p;
    fa_config c;
    cr_assert_eq(fa_problem_parse(&p, "bf16,d=64"), FA_OK);
    cr_assert_eq(fa_config_parse(&c, config), FA_OK, "%s", fa_last_error());
    return fa_render(g, &p, &c, fa_arch_find("sm_80"), 0, s);
}

/* The generator renders a kernel of the library's own to the bytes it always had. */
static void still_works(fa_gen *g, const char *script)
{
    fa_source s;
    cr_assert_eq(render(g, "naive:tile=64", &s), FA_OK, "after \"%.100s\": %s", script, fa_last_error());
    if (!real_hash[0])
        memcpy(real_hash, s.hash, sizeof real_hash);
    cr_assert(s.text_size > 1000 && !memcmp(real_hash, s.hash, sizeof real_hash), "after \"%.100s\"", script);
    fa_source_free(&s);
}

static void attacked(fa_gen *g, const char *script, const char *says)
{
    fa_source s;
    double t = cpu_seconds();
    fa_status st = render(g, "toy:br=16,bc=8", &s);
    t = cpu_seconds() - t;
    if (t > slowest) {
        slowest = t;
        slowest_script = script;
    }
    cr_expect_eq(st, FA_TEMPLATE, "\"%.100s\" gave %s: %.300s", script, fa_status_name(st), st == FA_OK ? s.text : fa_last_error());
    bool late = SLOW && strstr(fa_last_error(), "the time limit is used up");
    cr_expect(st != FA_TEMPLATE || late || strstr(fa_last_error(), says), "\"%.100s\" gave \"%.300s\", not \"%s\"", script, fa_last_error(),
              says);
    cr_expect_lt(t, MOST_SECONDS, "\"%.100s\" took %.1f s", script, t);
    fa_source_free(&s);
    still_works(g, script);
}

Test(attacks, in_a_template, .timeout = 600)
{
    char dir[64], cu[1024];
    toy_dir(dir, "");
    limit_memory();
    for (size_t i = 0; i < COUNT(in_template); i++) {
        fa_gen *g;
        fa_source s;
        bool steps = !strcmp(in_template[i].says, "step limit"), bytes = !steps && strstr(in_template[i].says, "limit");
        if (!full() && (steps ? i % 24 : bytes ? i % 3 : 0))
            continue;
        snprintf(cu, sizeof cu, "ok\n//| if c.br == 16 then\n//| %s\n//| end\nafter\n", in_template[i].script);
        toy_write(dir, "toy.cu", cu);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        attacked(g, in_template[i].script, in_template[i].says);
        cr_assert_eq(render(g, "toy:br=64,bc=8", &s), FA_OK, "after \"%s\": %s", in_template[i].script, fa_last_error());
        cr_assert_str_eq(s.text, "ok\nafter\n");
        fa_source_free(&s);
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
    cr_log_info("%zu scripts; the slowest took %.2f s: %s", COUNT(in_template), slowest, slowest_script);
}

Test(attacks, of_a_whole_template, .timeout = 600)
{
    char dir[64];
    toy_dir(dir, "");
    limit_memory();
    for (size_t i = 0; i < COUNT(whole); i++) {
        fa_gen *g;
        toy_write(dir, "toy.cu", whole[i].script);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        attacked(g, whole[i].script, whole[i].says);
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
}

Test(attacks, of_the_compiler, .timeout = 600)
{
    static char cu[FA_FILE_BYTES + 1];
    char dir[64];
    toy_dir(dir, "");
    limit_memory();
    for (size_t i = 0; i < COUNT(repeated); i++) {
        fa_gen *g;
        size_t n = strlen(repeated[i].before), len = strlen(repeated[i].piece), rest = strlen(repeated[i].after);
        memcpy(cu, repeated[i].before, n);
        for (; n + len + rest < sizeof cu; n += len)
            memcpy(cu + n, repeated[i].piece, len);
        memcpy(cu + n, repeated[i].after, rest + 1);
        toy_write(dir, "toy.cu", cu);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        attacked(g, repeated[i].piece, repeated[i].says);
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
    cr_log_info("%zu texts; the slowest took %.2f s: %s", COUNT(repeated), slowest, slowest_script);
}

/* The .lua of a family, as it is loaded: no generator comes to be, and the next one does. */
static const attack in_family[] = {
    { "while true do end", "step limit" },
    { "local t = {} while true do t[#t + 1] = t end", "memory limit" },
    { "return include 'toy.lua'", "more than 16 deep" },
    { "__line(1, 0, 'x')", "text where none can be written" },
    { "include 'toy.cu'", "text where none can be written" },
    { "return { doc = ('x'):rep(1 << 30) }", "memory limit" },
    { "return { doc = 'x', tunables = { { 'a', { 1 << 40 }, 'x' } } }", "32 bits" },
    { "local v = {} for i = 1, 60000 do v[i] = i end return { doc = 'x', tunables = { { 'a', v, 'x' } } }",
      "toy.lua: tunable a has 60000 values; accepted: at most 1024" },
    { "local v = {} for i = 1, 1000000 do v[i] = i end return { doc = 'x', tunables = { { 'a', v, 'x' } } }",
      "toy.lua: tunable a has 1000000 values; accepted: at most 1024" },
    { "local t = {} for i = 1, 1 << 20 do t[i] = { 'a', { 1 }, 'x' } end return { doc = 'x', tunables = t }", "limit" },
    { "local t = {} for i = 1, 100 do t[i] = { 'a' .. i, { 1 }, 'x' } end return { doc = 'x', tunables = t }", "at most" },
    { "return { doc = 'x', tunables = { { ('a'):rep(100), { 1 }, 'x' } } }", "letters" },
    { "\x1bLua", "binary chunk" },
    { "return error", "returns a function" },
    { "return os", "undefined name 'os'" },
};

Test(attacks, in_a_family, .timeout = 600)
{
    char dir[64];
    toy_dir(dir, "x\n");
    limit_memory();
    for (size_t i = 0; i < COUNT(in_family); i++) {
        fa_gen *g;
        toy_write(dir, "toy.lua", in_family[i].script);
        cr_expect_eq(fa_gen_open(&g, dir), FA_TEMPLATE, "%s", in_family[i].script);
        cr_expect(!g && strstr(fa_last_error(), in_family[i].says), "\"%s\" gave \"%.300s\"", in_family[i].script, fa_last_error());
        cr_assert_eq(fa_gen_open(&g, NULL), FA_OK, "%s", fa_last_error());
        still_works(g, in_family[i].script);
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
}

/* A function of a family that goes wrong when it is asked. %s takes its place in the toy's. */
static const struct {
    const char *field, *body, *says;
} answers[] = {
    { "supports", "while true do end", "step limit" },
    { "supports", "return 1", "accepted: true" },
    { "supports", "return false, ('x'):rep(1 << 20)", "" },
    { "layout", "while true do end", "step limit" },
    { "layout", "return ('x'):rep(1 << 30)", "memory limit" },
    { "layout", "return 1", "accepted: a table" },
    { "layout", "return { bytes = -1, threads = 32 }", "from 0 to" },
    { "layout", "return { bytes = 1 << 40, threads = 32 }", "from 0 to" },
    { "layout", "return { bytes = 1e300, threads = 32 }", "from 0 to" },
    { "layout", "return { bytes = 0/0, threads = 32 }", "from 0 to" },
    { "layout", "return { bytes = 16, threads = 0 }", "threads of layout is 0" },
    { "layout", "return include 'toy.lua'.layout(p, c, a)", "" },
    { "steps", "while true do end", "step limit" },
    { "steps", "return {}", "" },
    { "steps", "local t = {} for i = 1, 100 do t[i] = { entry = 'x', grid = 'sq/16 hq b' } end return t", "" },
    { "steps", "return { { entry = ('x'):rep(1000), br = 16 } }", "" },
    { "steps", "return { { entry = 'x', grid = 'sq/' .. (1 << 40) } }", "" },
    { "steps", "return { { entry = 'x', grid = 'sq/16 hq b', cluster = 1 << 20 } }", "cluster" },
};

Test(attacks, by_an_answer, .timeout = 600)
{
    char dir[64], lua[2048];
    toy_dir(dir, "x\n");
    limit_memory();
    for (size_t i = 0; i < COUNT(answers); i++) {
        fa_gen *g;
        fa_source s;
        char field[32];
        snprintf(field, sizeof field, "\n  %s = function(", answers[i].field);
        const char *at = strstr(toy_lua, field), *open = at ? strchr(at, ')') : NULL, *next = open ? strchr(open, '\n') : NULL;
        cr_assert(at && open && next);
        snprintf(lua, sizeof lua, "%.*s %s end,%s", (int)(open + 1 - toy_lua), toy_lua, answers[i].body, next);
        toy_write(dir, "toy.lua", lua);
        cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
        for (int again = 0; again < 20; again++) { /* nothing adds up */
            fa_status st = render(g, "toy:br=16,bc=8", &s);
            cr_expect(st != FA_OK && st != FA_NOMEM, "\"%s\" gave %s", answers[i].body, fa_status_name(st));
            cr_expect(strstr(fa_last_error(), answers[i].says), "\"%s\" gave \"%.300s\"", answers[i].body, fa_last_error());
            fa_source_free(&s);
            if (strstr(fa_last_error(), "limit") || strstr(fa_last_error(), "overflow"))
                break;
        }
        still_works(g, answers[i].body);
        fa_gen_close(g);
    }
    toy_remove(dir, NULL);
}

/* A script that keeps what it was given in one render, and uses it in the next. */
Test(attacks, with_what_was_kept)
{
    char dir[64], lua[2048];
    fa_gen *g;
    fa_source s;
    toy_dir(dir, "//| if c.br == 16 then l.kept.line, l.kept.include = __line, include end\n"
                 "//| if c.br == 64 then l.kept.line(1, 0, 'from the past') end\n"
                 "//| if c.br == 32 then l.kept.include 'toy.cu' end\nnow\n");
    const char *layout = strstr(toy_lua, "regs = 40");
    cr_assert(layout);
    snprintf(lua, sizeof lua, "local kept = {}\n%.*s%s%s", (int)(layout - toy_lua), toy_lua, "kept = kept, ", layout);
    toy_write(dir, "toy.lua", lua);
    cr_assert_eq(fa_gen_open(&g, dir), FA_OK, "%s", fa_last_error());
    cr_assert_eq(render(g, "toy:br=16,bc=8", &s), FA_OK, "%s", fa_last_error());
    fa_source_free(&s);
    cr_assert_eq(render(g, "toy:br=64,bc=8", &s), FA_OK, "it writes where this render writes: %s", fa_last_error());
    cr_expect_str_eq(s.text, "from the past\nnow\n");
    fa_source_free(&s);
    cr_assert_eq(render(g, "toy:br=32,bc=8", &s), FA_OK, "%s", fa_last_error());
    cr_expect_str_eq(s.text, "now\nnow\n");
    fa_source_free(&s);
    still_works(g, "kept");
    fa_gen_close(g);
    toy_remove(dir, NULL);
}
