#include "buffer.h"

static size_t alive;

Buffer *buffer_new(size_t bytes) {
    Buffer *buffer = malloc(sizeof(Buffer) + bytes);
    if (buffer) {
        buffer->references = 1;
        buffer->bytes = bytes;
        buffer->has_text = 1;
        count_add(&alive, 1);
    }
    return buffer;
}

void buffer_keep(Buffer *buffer, size_t references) { count_add(&buffer->references, references); }

void buffer_drop(Buffer *buffer, size_t references) {
    if (count_add(&buffer->references, -references) == 0) {
        count_add(&alive, -1);
        free(buffer);
    }
}

size_t buffers_alive(void) { return count_add(&alive, 0); }
