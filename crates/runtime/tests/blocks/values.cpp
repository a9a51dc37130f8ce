// options: -std=c++17
// The same interface for C++, with strings and vectors.
#include <string>
#include <vector>

#include <selvedge.hpp>

int main() {
    selvedge::Deterministic block("vectors");
    const std::vector<double> numbers{1.5, 2.5};
    const std::vector<std::string> names{"a", "bc"};
    selvedge::assume("name", std::string("tree"));
    selvedge::ensure("count", 3u);
    selvedge::ensure("numbers", numbers, SELVEDGE_WITHIN(0.5));
    selvedge::ensure("names", names, SELVEDGE_SET);
    selvedge::ensure("flags", std::vector<bool>{true, false});
}
