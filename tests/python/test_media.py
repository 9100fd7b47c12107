"""Media processing: memory and descriptions work, and what needs the hardware says what to use instead."""

from __future__ import annotations

from programs import run_snippet


def test_pictures_keep_what_they_are_told() -> None:
    result = run_snippet(
        """
acl.init(); acl.rt.set_device(0)
media = acl.media
memory, code = media.dvpp_malloc(64)
picture = media.dvpp_create_pic_desc()
codes = [
    code,
    media.dvpp_set_pic_desc_data(picture, memory),
    media.dvpp_set_pic_desc_size(picture, 2**32 + 64),
    media.dvpp_set_pic_desc_format(picture, -1),
]
kept = [
    media.dvpp_get_pic_desc_data(picture) == memory,
    media.dvpp_get_pic_desc_size(picture),
    media.dvpp_get_pic_desc_format(picture),
    media.dvpp_get_pic_desc_width(picture),
]
ended = [media.dvpp_destroy_pic_desc(picture), media.dvpp_destroy_pic_desc(picture), media.dvpp_free(memory)]
result = [codes, kept, ended]
"""
    )
    assert result == [[0, 0, 0, 0], [True, 64, -1, 0], [0, 100000, 0]]


def test_what_needs_the_hardware_says_what_to_use() -> None:
    result = run_snippet(
        """
acl.init()
channel = acl.media.vdec_create_channel_desc()
code = acl.media.vdec_set_channel_desc_callback(channel, print)
answers = [acl.media.vdec_create_channel(channel), acl.media.dvpp_jpeg_predict_dec_size(b"", 0, 1)]
result = [code, answers, acl.get_recent_err_msg()]
"""
    )
    code, answers, text = result
    assert [code, answers] == [0, [200001, [0, 200001]]]
    assert "acldvppJpegPredictDecSize is not supported" in text
    assert "OpenCV" in text
    assert "aclvdecCreateChannel is not supported" in text
