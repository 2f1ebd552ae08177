#include "cuda/nvml/processes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/nvml/device_facts.h"
#include "cuda/nvml/reader.h"
#include "cuda/nvml/session.h"

enum { TRIES = 4, ROOM = 16, ANCESTORS_MAX = 64, PROCESSES_DEADLINE_MS = 8000 };

/* One kind of processes of a device, compute or graphics: the newest function that there
 * is. */
struct listing {
    int (*get)(struct nvml_handle *, unsigned *, struct nvml_process *);
    int (*get_old)(struct nvml_handle *, unsigned *, struct nvml_process_old *);
};

static int ask(const struct listing *l, struct nvml_handle *handle, unsigned *count,
               void *infos)
{
    return l->get       ? l->get(handle, count, infos)
           : l->get_old ? l->get_old(handle, count, infos)
                        : (int)NVML_FUNCTION_NOT_FOUND;
}

static void add(struct nvml_processes *p, unsigned pid)
{
    for (int i = 0; i < p->count; i++) {
        if (p->pids[i] == pid) {
            return; /* it computes and draws */
        }
    }
    p->total++;
    if (p->count < NVML_PROCESSES_MAX) {
        p->pids[p->count++] = pid;
    }
}

/* The list may grow between being told how long it is and being read. */
static int list(const struct listing *l, struct nvml_handle *handle,
                struct nvml_processes *p)
{
    size_t size = l->get ? sizeof(struct nvml_process) : sizeof(struct nvml_process_old);
    unsigned room = ROOM;
    int code = NVML_INSUFFICIENT_SIZE;

    for (int i = 0; i < TRIES && code == NVML_INSUFFICIENT_SIZE; i++) {
        unsigned count = room;
        char *infos = calloc(room, size);

        if (!infos) {
            abort();
        }
        code = ask(l, handle, &count, infos);
        for (unsigned n = 0; code == NVML_OK && n < count && n < room; n++) {
            unsigned pid;

            memcpy(&pid, infos + n * size, sizeof pid); /* its first member */
            add(p, pid);
        }
        room = count > room ? count + ROOM : room * 2;
        room = room > 65536 ? 65536 : room;
        free(infos);
    }
    return code;
}

/* The instance where UUID names one: other instances' processes are not on it. */
static int find(const struct nvml_api *api, const char *uuid, struct nvml_handle **ret)
{
    char other[FACT_TEXT_SIZE];
    int code = NVML_CALL(api, DeviceGetHandleByUUID, uuid, ret);

    if (code != NVML_OK && strncmp(uuid, "GPU-", 4) == 0) {
        snprintf(other, sizeof other, "MIG-%.90s", uuid + 4);
        code =
            NVML_CALL(api, DeviceGetHandleByUUID, other, ret) == NVML_OK ? NVML_OK : code;
    }
    return code;
}

static bool has_no_such(int code)
{
    return code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND;
}

static void read_processes(const struct nvml_api *api, void *record)
{
    struct nvml_processes *p = record;
    const struct listing compute = { api->DeviceGetComputeRunningProcesses_v3
                                         ? api->DeviceGetComputeRunningProcesses_v3
                                         : api->DeviceGetComputeRunningProcesses_v2,
                                     api->DeviceGetComputeRunningProcesses };
    const struct listing graphics = { api->DeviceGetGraphicsRunningProcesses_v3
                                          ? api->DeviceGetGraphicsRunningProcesses_v3
                                          : api->DeviceGetGraphicsRunningProcesses_v2,
                                      api->DeviceGetGraphicsRunningProcesses };
    struct nvml_handle *handle;
    int code = find(api, p->uuid, &handle);

    if (code == NVML_OK) {
        code = list(&compute, handle, p);
    }
    if (code == NVML_OK) {
        int drawing = list(&graphics, handle, p);

        code = has_no_such(drawing) ? NVML_OK : drawing; /* a GPU that draws nothing */
    }
    p->known = code == NVML_OK;
    if (!p->known) {
        nvml_describe(code, p->cause);
    }
}

void nvml_processes_read(const char *uuid, int deadline_ms,
                         struct nvml_processes *ret_processes)
{
    char cause[NVML_CAUSE_SIZE];

    memset(ret_processes, 0, sizeof *ret_processes);
    snprintf(ret_processes->uuid, sizeof ret_processes->uuid, "%s", uuid);
    if (!nvml_session_read(read_processes, ret_processes, sizeof *ret_processes,
                           deadline_ms, cause)) {
        memcpy(ret_processes->cause, cause, sizeof cause);
    }
}

bool nvml_processes_have_self(const struct nvml_processes *p)
{
    for (int i = 0; i < p->count; i++) {
        if (p->pids[i] == (unsigned)getpid()) {
            return true;
        }
    }
    return false;
}

/* The parent of PID, with its name; 0: there is no such process here. */
static unsigned parent_of(unsigned pid, char ret_name[32])
{
    char path[32];
    char line[512];
    unsigned parent = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    snprintf(ret_name, 32, "?");
    file = fopen(path, "re");
    if (file) {
        size_t length = fread(line, 1, sizeof line - 1, file);
        char *open;
        char *close;

        line[length] = '\0';
        open = strchr(line, '(');
        close = strrchr(line, ')'); /* a name may have some */
        if (open && close && sscanf(close + 1, " %*c %u", &parent) == 1) {
            *close = '\0';
            snprintf(ret_name, 32, "%.31s", open + 1);
        }
        fclose(file);
    }
    return parent;
}

/* This process, and what descends from who started it: the agent. */
static bool is_own(unsigned pid)
{
    unsigned agent = (unsigned)getppid();
    char name[32];

    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
        if (pid == agent || pid == (unsigned)getpid()) {
            return true;
        }
        pid = parent_of(pid, name);
    }
    return false;
}

void nvml_emit_foreign(struct emit *emit, const char *key, const struct nvml_processes *p,
                       char *ret_cause)
{
    int foreign = p->total - p->count; /* those beyond cannot be told */
    int shown = 0;

    if (ret_cause) {
        snprintf(ret_cause, NVML_CAUSE_SIZE, "%s", p->known ? "" : p->cause);
    }
    if (!p->known) {
        return;
    }
    emit_array(emit, key);
    for (int i = 0; i < p->count; i++) {
        char name[32];
        char text[64];

        if (is_own(p->pids[i])) {
            continue;
        }
        foreign++;
        if (shown < NVML_PROCESSES_SHOWN) {
            parent_of(p->pids[i], name);
            for (char *c = name; *c; c++) {
                *c = (char)(isprint((unsigned char)*c) ? *c : '?');
            }
            snprintf(text, sizeof text, "%u %s", p->pids[i], name);
            emit_string(emit, NULL, text);
            shown++;
        }
    }
    if (foreign > shown) {
        char text[32];

        snprintf(text, sizeof text, "and %d more", foreign - shown);
        emit_string(emit, NULL, text);
    }
    emit_array_end(emit);
}

static void emit_device(struct emit *emit, const char *uuid)
{
    struct nvml_processes processes;
    char cause[NVML_CAUSE_SIZE];

    nvml_processes_read(uuid, PROCESSES_DEADLINE_MS, &processes);
    emit_object(emit, NULL);
    emit_string(emit, "id", uuid);
    nvml_emit_foreign(emit, "foreign", &processes, cause);
    emit_string(emit, "cause", cause[0] ? cause : NULL);
    emit_object_end(emit);
}

void nvml_emit_processes(struct emit *emit)
{
    static struct nvml_inventory inventory;
    char cause[NVML_CAUSE_SIZE] = "";

    nvml_inventory_read(&inventory, PROCESSES_DEADLINE_MS, cause);
    emit_array(emit, "devices");
    for (int i = 0; i < inventory.gpu_count; i++) {
        const struct nvml_gpu *gpu = &inventory.gpus[i];

        for (int m = 0; m < gpu->mig_count; m++) {
            if (gpu->migs[m].uuid.known) {
                emit_device(emit, gpu->migs[m].uuid.value);
            }
        }
        if (gpu->uuid.known && gpu->mig_count == 0) {
            emit_device(emit, gpu->uuid.value);
        }
    }
    emit_array_end(emit);
    emit_string(emit, "cause", cause[0] ? cause : NULL);
}
