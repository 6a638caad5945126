#pragma once

struct sqlite3;

namespace fmha::catalog {

/// Gives a connection the functions that `sql_of` writes where SQL has none with Python's meaning: py_divide,
/// py_floor_divide, py_modulo, py_element, py_startswith, py_endswith. A division by zero and an element that a tuple
/// has not end the statement with a message.
void add_python_functions(sqlite3* db);

} // namespace fmha::catalog
