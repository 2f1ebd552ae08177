/* One embedded file (embed.h): its bytes, a NUL, its name, and its entry in the section that
 * embed.c reads.  The Makefile assembles this once a file and defines EMBEDDED_FILE. */
    .section .rodata
    .balign 16
.Lstart:
    .incbin EMBEDDED_FILE
.Lend:
    .byte 0
.Lname:
    .asciz EMBEDDED_FILE

    .section reprod_embedded, "aw"
    .balign 8
    .quad .Lname, .Lstart, .Lend

    .section .note.GNU-stack, "", @progbits
