#!/bin/sh
# The Python module on the library of this build. python_module.py has the cases; they need NumPy.
. "$SOURCE/tests/cli/lib.sh"

python=
for candidate in python3 /usr/bin/python3 "$SOURCE/.venv-peers/bin/python"; do
    if "$candidate" -c 'import numpy' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if is_sanitized || [ -z "$python" ]; then
    skip "a sanitizer, or no Python with NumPy (Debian: python3-numpy; bench/peers/setup)"
    finish
fi

# The package as a wheel has it, but for the libraries, which are those of the build.
mkdir -p site/tandem
cp "$SOURCE"/python/tandem/* site/tandem/
# As in a checkout that was not built: one sentence says what is missing, where, and what to do.
expect_exit 1 env PYTHONPATH="$temp/site" "$python" -c 'import tandem'
expect_stderr_matches '^ImportError: tandem is not built: .*/site/tandem has no _declarations.py, .* make wheel builds'
rm -rf site/tandem/__pycache__
expect_exit 0 "$python" "$SOURCE/python/declarations" "$SOURCE/include"
cp "$out" site/tandem/_declarations.py

# Without its library.
mkdir lone && cp -r site/tandem lone/
sed -i 's/^\(TDM_VERSION_MAJOR\) = .*/\1 = 99/' lone/tandem/_declarations.py
expect_exit 1 env PYTHONPATH="$temp/lone" "$python" -c 'import tandem'
expect_stderr_matches '^ImportError: tandem cannot open its library, .*/lone/tandem/lib/libtandem.so.99, or .*; make wheel in a'

LD_LIBRARY_PATH=$BUILD PYTHONPATH=$temp/site PYTHONDONTWRITEBYTECODE=1 \
    "$python" "$SOURCE/tests/cli/python_module.py" || n_failed=1
finish
