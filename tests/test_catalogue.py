from ffilab.setup.catalogue import ALL, BY_LABEL, CHAPTER_PAIR, parse


def test_default_requires_the_pair_and_takes_the_rest_if_it_is_cheap():
    request = parse("")
    assert request.required == CHAPTER_PAIR
    assert set(request.optional) == set(ALL) - set(CHAPTER_PAIR)


def test_all_requires_everything():
    assert parse("all").required == ALL


def test_labels_paths_and_duplicates():
    request = parse("3.14=/opt/python, cpython-3.14t 3.14t")
    assert request.named == {BY_LABEL["3.14"]: "/opt/python"}
    assert request.required == CHAPTER_PAIR


def test_every_interpreter_has_a_kernel_folder_and_a_lock():
    from ffilab.setup.installed import folder

    for interpreter in ALL:
        assert (folder(interpreter) / "kernel.json").exists()
        assert "--hash=sha256:" in (folder(interpreter) / "requirements.txt").read_text()
