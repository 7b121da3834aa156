/* entry: one compiled kernel in one immutable file: header (magic, format version, key, lengths, arch), a description in
 * JSON (for `fagen cache`), the image (a cubin or PTX text), the compiler's log, XXH3-128 of all before it. */
#ifndef FA_CACHE_ENTRY_H
#define FA_CACHE_ENTRY_H
#include "store.h"

#define FA_FORMAT_VERSION 1 /* of the files; a part of every key */

/* The key: a hash of everything that decides the image. Text form: 32 lower-case hex digits. */
typedef struct fa_key {
    uint64_t lo, hi;
} fa_key;

/* source_hash: the hash of the rendered text; options: as handed to NVRTC, in order; arch: "sm_90a"; compiler: its version
 * and the identity (digest) of its library. Takes in the format version as well. */
fa_key fa_key_make(const uint64_t source_hash[2], const char *const *options, int n_options, const char *arch, const char *compiler);
void fa_key_print(char out[33], fa_key k);
bool fa_key_parse(fa_key *out, const char *hex);

typedef struct fa_entry {
    fa_key key;
    char arch[12];
    int32_t ptx;                                /* 1: image is PTX text with its NUL counted, 0: a cubin */
    char *image, *log, *metadata;               /* heap, NUL-terminated one byte past their size */
    size_t image_size, log_size, metadata_size; /* metadata: a JSON object, see metadata.h */
    bool proved;                                /* set by fa_entry_get: this file was loaded before without harm (load_marker.h) */
} fa_entry;
void fa_entry_free(fa_entry *e);

/* True on a hit: the verified bytes are in *out. Anything wrong with a file is a miss; a bad file in the writable root is
 * removed so that the next put repairs it. Takes no lock. Thread-safe. */
bool fa_entry_get(fa_store *s, fa_key k, const char *arch, fa_entry *out);

/* Publishes: temporary file in kernels/, write, fsync, rename, fsync of the directory; an entry that is there is replaced. Then
 * what exceeds the store's limit goes (quota.h).
 * False when that was not possible (the caller goes on with its own bytes). Thread-safe, and safe against other processes. */
bool fa_entry_put(fa_store *s, const fa_entry *e);

/* Takes the bytes of a file apart: NULL, or what is wrong with them, a literal (fa_entry_no_memory says nothing about them); any
 * bytes are safe. The caller frees *out either way. with_image: false leaves image NULL. */
const char *fa_entry_unpack(fa_entry *out, const char *bytes, size_t size, bool with_image);
extern const char fa_entry_no_memory[];

/* The bytes of e's file, on the heap; NULL when memory runs out or it would be too large. */
char *fa_entry_pack(const fa_entry *e, size_t *size);

/* Calls f for each file of kernels/ of every root, read and checked, without its image. damaged: what is wrong with it, or NULL. */
int fa_entry_each(fa_store *s, int (*f)(void *user, const fa_entry *e, const char *path, const char *damaged), void *user);
#endif
