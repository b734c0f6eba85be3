// The heap of a short-lived program that builds large tables: freed memory is kept, and pages are huge where the system
// has them. A first touch costs a fault per page; with pages of 2 MiB there are 512 times fewer of them, which halves
// the time of a simulation of many thousand ranks.
#pragma once

namespace stepcast {

// Call it once, first thing in main(), before threads start. Does nothing where the system or the C library is another
// than Linux with glibc, and nothing but keep freed memory where the kernel has no huge pages.
void prepare_heap();

}  // namespace stepcast
