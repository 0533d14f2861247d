cython -3 locked.pyx
python_h=$(python -c "import sysconfig; print(sysconfig.get_path('include'))")
${CC:-cc} -O1 -shared -fPIC -I "$python_h" locked.c -o locked.so
