export PATH=$HOME/cpython:$PATH CPATH=$HOME/cpython # python, and pyconfig.h
export CC="cc -fsanitize=thread -g" CXX="c++ -fsanitize=thread -g"
TSAN_OPTIONS=report_bugs=0 sh -e build.sh
# What CPython knows of itself is no report.
export TSAN_OPTIONS="exitcode=66 suppressions=$HOME/cpython/Tools/tsan/suppressions_free_threading.txt"
# Its shadow memory has a fixed place: addresses are not to be drawn.
setarch -R python try_it.py
