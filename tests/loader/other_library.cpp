// A library that is no plugin.
extern "C" int fmha_not_a_plugin() {
    return 0;
}
