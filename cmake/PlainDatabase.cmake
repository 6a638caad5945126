# cmake -DFROM=<folder> -DTO=<folder> -P PlainDatabase.cmake: the compile database without precompiled headers.
file(READ ${FROM}/compile_commands.json database)
string(REGEX REPLACE " -Winvalid-pch" "" database "${database}")
string(REGEX REPLACE " -include [^ ]*/cmake_pch\\.hxx" "" database "${database}")
file(WRITE ${TO}/compile_commands.json "${database}")
