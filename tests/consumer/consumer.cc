// As consumer.c, in C++: the C headers must compile and link as C++ too.
#include <iostream>
#include <string>

#include <thalweg/thalweg.h>

int main(int argc, char** argv) {
  const std::string version = tw_version_string();
  if (argc > 1 && version != argv[1]) {
    std::cerr << "library is " << version << ", package says " << argv[1] << "\n";
    return 1;
  }
  std::cout << "C++: Thalweg " << version << "\n";
}
