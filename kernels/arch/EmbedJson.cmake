# cmake -DROOT=<folder> -DFILES=<a|b|c> -DOUTPUT=<file.cpp> -P EmbedJson.cmake
# Writes a C++ file that holds the listed files of ROOT as raw strings. Files are separated by '|'.
string(REPLACE "|" ";" FILES "${FILES}")
set(body "// Generated from the JSON files of kernels/arch.\n#include \"kernels/arch/arch.hpp\"\n\n#include <array>\n\n")
string(APPEND body "namespace fmha::arch {\n\nstd::span<const ArchSet::File> ArchSet::built_in_files() {\n")
list(LENGTH FILES count)
string(APPEND body "    static constexpr std::array<File, ${count}> files{{\n")
foreach(file IN LISTS FILES)
  file(READ "${ROOT}/${file}" text)
  string(APPEND body "{\"${file}\", R\"fmha~(${text})fmha~\"},\n")
endforeach()
string(APPEND body "    }};\n    return files;\n}\n\n} // namespace fmha::arch\n")
file(WRITE "${OUTPUT}" "${body}")
