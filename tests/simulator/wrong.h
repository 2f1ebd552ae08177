/* Devices that compute wrong:
 * REPROD_CUDASIM_WRONG=13/sum_kernel/same,13/max_kernel/another says that device 13 flips
 * a bit of what it writes in each launch of these kernels: a low bit of the first word
 * that the kernel changed, always the same one, or another one each time, of any word.  A
 * bit of a float32 is among the last of its fraction, so that no reference notices. */
#ifndef TESTS_SIMULATOR_WRONG_H
#define TESTS_SIMULATOR_WRONG_H

#include <vector>

namespace cudasim
{
/* Around a launch of KERNEL on the current device. */
class wrong_write
{
  public:
    explicit wrong_write(const char *kernel);
    void happen();

  private:
    enum { NO, SAME, ANOTHER } how;
    std::vector<unsigned char> before; /* all of the device's memory, as it was */
};
} // namespace cudasim

#endif
