#include "tests/simulator/wrong.h"

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/simulator/cudart.h"

enum { LOW_BITS = 3 };

cudasim::wrong_write::wrong_write(const char *kernel) : how(NO)
{
    const char *planted = getenv("REPROD_CUDASIM_WRONG");
    if (!planted) {
        return;
    }
    std::string all = std::string(",") + planted + ",";
    std::string own = "," + std::to_string(device_number()) + "/" + kernel + "/";
    how = all.find(own + "same,") != std::string::npos      ? SAME
          : all.find(own + "another,") != std::string::npos ? ANOTHER
                                                            : NO;
    if (how != NO) {
        each_allocation([this](unsigned char *memory, size_t bytes) {
            before.insert(before.end(), memory, memory + bytes);
        });
    }
}

void cudasim::wrong_write::happen()
{
    std::vector<unsigned char *> changed;
    uint32_t drawn = 0;
    size_t offset = 0;

    if (how == NO) {
        return;
    }
    each_allocation([&](unsigned char *memory, size_t bytes) {
        for (size_t i = 0; i + sizeof(float) <= bytes; i += sizeof(float)) {
            if (memcmp(memory + i, &before[offset + i], sizeof(float)) != 0) {
                changed.push_back(memory + i);
            }
        }
        offset += bytes;
    });
    if (how == ANOTHER && getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
        abort();
    }
    if (!changed.empty()) {
        *changed[drawn / LOW_BITS % changed.size()] ^=
            (unsigned char)(1u << drawn % LOW_BITS);
    }
}
