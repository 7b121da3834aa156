/* identifier: the names that C and C++ keep for themselves. */
#include "identifier.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* C23 and C++23, with the alternative spellings of operators; between blanks. */
static const char keywords[] =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await co_return "
    "co_yield compl "
    "concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit "
    "export extern "
    "false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected "
    "public "
    "register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq ";

/* Macros that compilers define without being asked, and what <stddef.h> defines. */
static const char macros[] = " linux unix i386 arm mips sparc sun vax NULL offsetof unreachable ";

/* Functions of the hosted C library that compilers know by name, and the program's own. */
static const char functions[] =
    " main abort abs acos asin atan atan2 calloc ceil cos cosh exit exp fabs floor fmod fprintf free frexp isalnum isalpha "
    "iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit labs ldexp log log10 malloc memchr memcmp memcpy "
    "memmove memset modf pow printf putchar puts realloc scanf signal sin sinh snprintf sprintf sqrt sscanf strcat strchr "
    "strcmp strcpy strcspn strlen strncat strncmp strncpy strpbrk strrchr strspn strstr tan tanh tolower toupper vfprintf "
    "vprintf vsprintf write read open close stdin stdout stderr errno environ ";

/* What <fagen.h> declares. */
static const char ours[] =
    " FAGEN_H fa_status fa_dtype fa_mask fa_op fa_feature fa_diagonal fa_flag fa_problem fa_tensor fa_args "
    "fa_context fa_stream fa_log_level fa_log_fn fa_bundle fa_options fa_create fa_bundle_open fa_destroy "
    "fa_supported fa_prepare fa_prepare_range fa_on_miss fa_problem_of fa_workspace_source fa_workspace_size fa_workspace_init "
    "fa_workspace_held fa_workspace_release fa_launch fa_explain "
    "fa_explain_size fa_copy_kind fa_alloc fa_free fa_copy fa_tune_options fa_tune fa_last_error fa_status_name "
    "fa_candidate_from fa_candidate_info fa_candidate_fn fa_candidates fa_pin fa_unpin fa_records_export fa_records_export_text "
    "fa_records_options fa_records_count fa_records_import fa_records_import_text fa_forget fa_records_forget "
    "fa_score fa_score_value fa_scale_by fa_scale fa_layout_flag fa_score_create fa_score_destroy fa_score_id "
    "fa_score_of_bundle fa_score_operand_at fa_score_operand_info fa_operand_kind fa_rotary_style fa_append_flag "
    "fa_version ";

static bool in(const char *words, const char *name, size_t n)
{
    for (const char *p = words; (p = memmem(p, strlen(p), name, n)); p++)
        if (p[-1] == ' ' && p[n] == ' ')
            return true;
    return false;
}

static bool ends(const char *name, size_t n, const char *with)
{
    size_t k = strlen(with);
    return n >= k && !memcmp(name + n - k, with, k);
}

const char *cli_identifier_doubt(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return "it has other characters than letters, digits and _";
    if (!n || isdigit((unsigned char)name[0]))
        return n ? "it begins with a digit" : "it is empty";
    if (in(keywords, name, n))
        return "it is a keyword of C or C++";
    if (name[0] == '_' || memmem(name, n, "__", 2))
        return "names that begin with _ or hold __ are the compiler's";
    if (in(macros, name, n) || ends(name, n, "_MAX") || ends(name, n, "_MIN"))
        return "it is, or may be, a macro of the compiler or of a standard header";
    if (ends(name, n, "_t"))
        return "names that end in _t are types of the system";
    if (in(functions, name, n))
        return "the C library has something of that name";
    if (in(ours, name, n) || (n >= 3 && !memcmp(name, "FA_", 3)))
        return "<fagen.h> has something of that name";
    return NULL;
}
