package process

// For address_space.c to be part of the program.

import "C"
