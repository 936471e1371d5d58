/* A stand-in for NVIDIA's management library, with as much of it as the agent asks. What it lacks, and how its GPUs are, is
   chosen when it is compiled:

   N_GPUS        how many there are
   WITHOUT_V2    a driver before 510: no nvmlDeviceGetMemoryInfo_v2
   WITHOUT_V1    no nvmlDeviceGetMemoryInfo either
   REFUSES_V2    the library knows the second version, the driver below it does not
   LOST          the number of a GPU that has fallen off the bus
   WORN          the number of a GPU with uncorrected memory errors
   NOT_LOADED    the library is there, the driver is not */

#include <string.h>

#ifndef N_GPUS
#define N_GPUS 2
#endif
#ifndef LOST
#define LOST -1
#endif
#ifndef WORN
#define WORN -1
#endif

enum { SUCCESS = 0, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15 };

static int gpus[64];

static int number_of(const int *gpu) { return (int)(gpu - gpus); }

unsigned nvmlInit_v2(void) {
#ifdef NOT_LOADED
    return DRIVER_NOT_LOADED;
#else
    return SUCCESS;
#endif
}

unsigned nvmlShutdown(void) { return SUCCESS; }

unsigned nvmlSystemGetDriverVersion(char *text, unsigned length) {
    strncpy(text, "450.80.02", length);
    return SUCCESS;
}

unsigned nvmlDeviceGetCount_v2(unsigned *count) {
    *count = N_GPUS;
    return SUCCESS;
}

unsigned nvmlDeviceGetHandleByIndex_v2(unsigned index, int **gpu) {
    *gpu = &gpus[index];
    return (int)index == LOST ? GPU_IS_LOST : SUCCESS;
}

unsigned nvmlDeviceGetName(int *gpu, char *text, unsigned length) {
    (void)gpu;
    strncpy(text, "Tesla V100-SXM2-16GB", length);
    return SUCCESS;
}

unsigned nvmlDeviceGetUUID(int *gpu, char *text, unsigned length) {
    strncpy(text, "GPU-0", length);
    text[4] = (char)('0' + number_of(gpu));
    return SUCCESS;
}

unsigned nvmlDeviceGetTotalEccErrors(int *gpu, unsigned kind, unsigned counter, unsigned long long *count) {
    (void)kind, (void)counter;
    *count = 7;
    return number_of(gpu) == WORN ? SUCCESS : NOT_SUPPORTED;
}

#ifndef WITHOUT_V1
struct memory { unsigned long long total, free, used; };

unsigned nvmlDeviceGetMemoryInfo(int *gpu, struct memory *memory) {
    (void)gpu;
    memory->total = 16000000000ull;
    return SUCCESS;
}
#endif

#ifndef WITHOUT_V2
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

unsigned nvmlDeviceGetMemoryInfo_v2(int *gpu, struct memory_v2 *memory) {
    (void)gpu;
#ifdef REFUSES_V2
    (void)memory;
    return FUNCTION_NOT_FOUND;
#else
    memory->total = 17000000000ull;
    return SUCCESS;
#endif
}
#endif
