# CMake generated Testfile for 
# Source directory: /tmp/w/compare
# Build directory: /tmp/w/compare/build-tidy
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
subdirs("tests")
