
/* Files in memory that a client passes to the service: what is checked. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "weights/memfile.h"


#define PAGE   4096
#define PAGES  8


static int
create(uint64_t bytes, unsigned more)
{
    int  fd;

    fd = memfd_create("test-memfile", MFD_CLOEXEC|MFD_ALLOW_SEALING|more);

    if (fd != -1) {
        assert_int_equal(ftruncate(fd, (off_t) bytes), 0);
    }

    return fd;
}


static void
fill(int fd, unsigned from, unsigned to)
{
    unsigned  i;
    uint8_t   page[PAGE];

    memset(page, 0, sizeof(page));

    for (i = from; i < to; i++) {
        assert_int_equal(pwrite(fd, page, sizeof(page), (off_t) i * PAGE),
                         sizeof(page));
    }
}


static int
is_sealed(int fd)
{
    memfile_t  file;

    assert_null(memfile_look(&file, fd));

    return memfile_is_sealed(&file);
}


/* Files of one byte, of whole pages, and with a part of a last page. */
static void
file_that_is_filled_is_sealed(void **state)
{
    size_t     i;
    memfile_t  file;

    static const uint64_t  sizes[] = {
        1, PAGES * PAGE, PAGES * PAGE - PAGE + 1
    };

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_null(memfile_look(&file, create(sizes[i], 0)));
        fill(file.fd, 0, (unsigned) ((sizes[i] + PAGE - 1) / PAGE));
        assert_int_equal(ftruncate(file.fd, (off_t) sizes[i]), 0);
        assert_null(memfile_seal(&file));
        assert_true(memfile_is_sealed(&file));
        assert_true(memfile_is_whole(&file));
        close(file.fd);
    }
}


/* A file with a hole is refused, wherever that is; it can be filled and sealed
   after that. */
static void
file_with_a_hole_is_not_sealed(void **state)
{
    unsigned   hole;
    memfile_t  file;

    for (hole = 0; hole < PAGES; hole++) {
        assert_null(memfile_look(&file, create(PAGES * PAGE, 0)));
        fill(file.fd, 0, hole);
        fill(file.fd, hole + 1, PAGES);
        assert_string_equal(memfile_seal(&file), "sparse");
        assert_false(is_sealed(file.fd));
        fill(file.fd, hole, hole + 1);
        assert_null(memfile_seal(&file));
        close(file.fd);
    }
}


/* Pages that were allocated count as the client's memory: no hole. */
static void
pages_that_were_never_written_are_no_hole(void **state)
{
    memfile_t  file;

    assert_null(memfile_look(&file, create(PAGES * PAGE, 0)));
    assert_int_equal(fallocate(file.fd, 0, 0, PAGES * PAGE), 0);
    assert_null(memfile_seal(&file));
    close(file.fd);
}


static void
holes_of_huge_pages_are_seen(void **state)
{
    int        fd;
    memfile_t  file;

    fd = create(1ULL << 40, MFD_HUGETLB);

    if (fd == -1) {
        skip();
    }

    assert_null(memfile_look(&file, fd));
    assert_int_equal(lseek(fd, 0, SEEK_HOLE), 1LL << 40);
    assert_string_equal(memfile_seal(&file), "sparse");
    close(fd);
}


/* Both descriptors share the file's offset, so that it is the client's, too. */
static void
looking_for_holes_moves_no_offset(void **state)
{
    memfile_t  file;

    assert_null(memfile_look(&file, create(PAGES * PAGE, 0)));
    assert_int_equal(lseek(file.fd, PAGE, SEEK_SET), PAGE);
    assert_string_equal(memfile_seal(&file), "sparse");
    fill(file.fd, 0, PAGES);
    assert_null(memfile_seal(&file));
    assert_int_equal(lseek(file.fd, 0, SEEK_CUR), PAGE);
    close(file.fd);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(file_that_is_filled_is_sealed),
        cmocka_unit_test(file_with_a_hole_is_not_sealed),
        cmocka_unit_test(pages_that_were_never_written_are_no_hole),
        cmocka_unit_test(holes_of_huge_pages_are_seen),
        cmocka_unit_test(looking_for_holes_moves_no_offset)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
