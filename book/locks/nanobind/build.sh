root=$(python -m nanobind --include_dir)/..
python_h=$(python -c "import sysconfig; print(sysconfig.get_path('include'))")
# What nanobind's function for CMake does with FREE_THREADED.
free=$(python -c "import sysconfig; print('-DNB_FREE_THREADED' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))")
${CXX:-c++} -std=c++17 -O1 -shared -fPIC -fvisibility=hidden -fno-strict-aliasing $free \
    -I "$root/include" -I "$root/ext/robin_map/include" -I "$python_h" \
    locked.cpp "$root/src/nb_combined.cpp" -o locked.so
