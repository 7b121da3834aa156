/* ggml/layout.h beside the headers of a ggml whose source FAGEN_GGML_SOURCE names: fields lie where they lie there. Built only then. */
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml.h"
#include "ggml/layout.h"
#include <criterion/criterion.h>

typedef struct ggml_tensor tensor;
typedef struct ggml_cgraph graph;
typedef struct ggml_backend backend;
typedef struct ggml_backend_event event;
typedef struct ggml_backend_device device;
typedef struct ggml_backend_dev_props properties;
typedef struct ggml_backend_reg reg;

#define FIELD(type, ours, theirs)                                                                                     \
    {                                                                                                                 \
#type "." #ours, offsetof(fa_ggml_##type, ours), sizeof(((fa_ggml_##type *)0)->ours), offsetof(type, theirs), \
            sizeof(((type *)0)->theirs)                                                                               \
    }
static const struct {
    const char *name;
    size_t ours, our_size, theirs, their_size;
} fields[] = {
    FIELD(tensor, type, type),
    FIELD(tensor, buffer, buffer),
    FIELD(tensor, ne, ne),
    FIELD(tensor, nb, nb),
    FIELD(tensor, op, op),
    FIELD(tensor, op_params, op_params),
    FIELD(tensor, flags, flags),
    FIELD(tensor, src, src),
    FIELD(tensor, view_src, view_src),
    FIELD(tensor, view_offs, view_offs),
    FIELD(tensor, data, data),
    FIELD(tensor, name, name),
    FIELD(tensor, extra, extra),
    FIELD(graph, size, size),
    FIELD(graph, n_nodes, n_nodes),
    FIELD(graph, n_leafs, n_leafs),
    FIELD(graph, nodes, nodes),
    FIELD(graph, grads, grads),
    FIELD(graph, grad_accs, grad_accs),
    FIELD(graph, leafs, leafs),
    FIELD(graph, use_counts, use_counts),
    FIELD(graph, visited, visited_hash_set),
    FIELD(graph, order, order),
    FIELD(graph, uid, uid),
    FIELD(backend, guid, guid),
    FIELD(backend, i.get_name, iface.get_name),
    FIELD(backend, i.free, iface.free),
    FIELD(backend, i.synchronize, iface.synchronize),
    FIELD(backend, i.graph_compute, iface.graph_compute),
    FIELD(backend, i.event_record, iface.event_record),
    FIELD(backend, i.event_wait, iface.event_wait),
    FIELD(backend, device, device),
    FIELD(backend, context, context),
    FIELD(event, device, device),
    FIELD(event, context, context),
    FIELD(device, i.get_name, iface.get_name),
    FIELD(device, i.get_description, iface.get_description),
    FIELD(device, i.get_memory, iface.get_memory),
    FIELD(device, i.get_type, iface.get_type),
    FIELD(device, i.get_properties, iface.get_props),
    FIELD(device, i.init_backend, iface.init_backend),
    FIELD(device, i.get_buffer_type, iface.get_buffer_type),
    FIELD(device, i.get_host_buffer_type, iface.get_host_buffer_type),
    FIELD(device, i.supports_op, iface.supports_op),
    FIELD(device, i.supports_buffer_type, iface.supports_buft),
    FIELD(device, i.event_new, iface.event_new),
    FIELD(device, i.event_free, iface.event_free),
    FIELD(device, reg, reg),
    FIELD(device, context, context),
    FIELD(properties, name, name),
    FIELD(properties, memory_free, memory_free),
    FIELD(properties, memory_total, memory_total),
    FIELD(properties, type, type),
    FIELD(properties, device_id, device_id),
    FIELD(properties, caps, caps),
    FIELD(reg, api_version, api_version),
    FIELD(reg, i.get_name, iface.get_name),
    FIELD(reg, i.device_count, iface.get_device_count),
    FIELD(reg, i.device, iface.get_device),
    FIELD(reg, i.proc_address, iface.get_proc_address),
    FIELD(reg, context, context),
};

Test(ggml_source, fields_lie_as_declared)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        cr_expect(fields[i].ours == fields[i].theirs && fields[i].our_size == fields[i].their_size,
                  "%s: %zu bytes at %zu; theirs: %zu at %zu", fields[i].name, fields[i].our_size, fields[i].ours, fields[i].their_size,
                  fields[i].theirs);
}

Test(ggml_source, structures_end_as_declared)
{
    cr_expect_eq(sizeof(fa_ggml_tensor), sizeof(tensor));
    cr_expect_eq(sizeof(fa_ggml_graph), sizeof(graph));
    cr_expect_eq(sizeof(fa_ggml_backend), sizeof(backend));
    cr_expect_eq(sizeof(fa_ggml_device), sizeof(device));
    cr_expect_eq(sizeof(fa_ggml_properties), sizeof(properties));
    cr_expect_eq(sizeof(fa_ggml_reg), sizeof(reg));
}

Test(ggml_source, numbers)
{
    cr_expect(GGML_BACKEND_API_VERSION >= FA_GGML_API_LEAST && GGML_BACKEND_API_VERSION <= FA_GGML_API_MOST, "backend API %d",
              GGML_BACKEND_API_VERSION);
    cr_expect_eq((int)GGML_TENSOR_FLAG_COMPUTE, FA_GGML_FLAG_COMPUTE);
    cr_expect_eq((int)GGML_STATUS_SUCCESS, FA_GGML_SUCCESS);
    cr_expect_eq((int)GGML_STATUS_FAILED, FA_GGML_FAILED);
    cr_expect_eq((int)GGML_BACKEND_DEVICE_TYPE_ACCEL, FA_GGML_DEVICE_ACCEL);
    cr_expect_lt((int)GGML_TYPE_BF16, FA_GGML_TYPES);
    cr_expect(GGML_OP_FLASH_ATTN_EXT < FA_GGML_OPS && GGML_OP_MUL_MAT_ID < FA_GGML_OPS);
}
