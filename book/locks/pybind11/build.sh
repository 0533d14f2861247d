${CXX:-c++} -std=c++17 -O1 -shared -fPIC -fvisibility=hidden $(python -m pybind11 --includes) locked.cpp -o locked.so
