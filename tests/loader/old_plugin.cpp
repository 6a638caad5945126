// A plugin that was built for another version of the interface.
extern "C" void* fmha_device_runtime(int) {
    return nullptr;
}
