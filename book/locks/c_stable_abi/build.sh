python_h=$(python -c "import sysconfig; print(sysconfig.get_path('include'))")
limited=$(python -c "import sysconfig; print('-DPy_LIMITED_API=0x030a0000' * (not sysconfig.get_config_var('Py_GIL_DISABLED')))")
${CC:-cc} -O1 -shared -fPIC $limited -I "$python_h" locked.c -o locked.so
