# The how-to pages show what the program prints today.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/tools/pages.sh"
check_pages "$SOURCE"/docs/how-to/*.md
finish
