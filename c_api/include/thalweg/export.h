/* Marks the functions that libthalweg.so exports. Every header of the application API includes this
 * one; nothing here has behaviour. */
#ifndef THALWEG_EXPORT_H
#define THALWEG_EXPORT_H
#define TW_EXPORT __attribute__((visibility("default")))
#endif
