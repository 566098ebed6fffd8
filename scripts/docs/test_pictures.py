"""Tests that the pictures match their sources, and the errors of invalid sources."""

import unittest
import xml.etree.ElementTree

import pictures

SAYS = 'says "Two boxes"\nbox a 0 0 client "client"\nbox b 1 0 edge "edge" "checks <all>"\n'


class PicturesTest(unittest.TestCase):
    def test_the_committed_pictures_are_those_of_their_sources(self) -> None:
        for file, picture in pictures.pictures().items():
            with self.subTest(file.name):
                self.assertEqual(file.read_text(encoding="utf-8"), picture, "run scripts/docs/pictures.py")

    def test_each_picture_is_shown_by_its_page(self) -> None:
        made = pictures.pictures()
        self.assertEqual({file for file in pictures.PICTURES.glob("*.svg")}, set(made))
        for file in made:
            self.assertIn(f"]({file.name})", file.with_suffix(".md").read_text(encoding="utf-8"))

    def test_a_picture_holds_all_that_it_draws(self) -> None:
        drawn = pictures.draw(f'{SAYS}frame "both" a b\narrow a b "asks"\n')
        root = xml.etree.ElementTree.fromstring(drawn)
        left, top, width, height = (float(size) for size in root.attrib["viewBox"].split())
        rects = [rect.attrib for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.attrib["class"] != "ground"]
        self.assertEqual(len(rects), 3)
        for rect in rects:
            self.assertGreaterEqual(float(rect["x"]), left)
            self.assertGreaterEqual(float(rect["y"]), top)
            self.assertLessEqual(float(rect["x"]) + float(rect["width"]), left + width)
            self.assertLessEqual(float(rect["y"]) + float(rect["height"]), top + height)

    def test_a_mistake_names_its_line(self) -> None:
        for written, reason in (
            ("arrow a c", "line 4: there is no box c"),
            ('box c 0 0 cloud "cloud"', "line 4: this is no command"),
            ('box c zero 0 edge "edge"', "line 4: could not convert"),
            ('box c 0 0 edge "edge', "line 4: No closing quotation"),
        ):
            with self.subTest(written), self.assertRaisesRegex(pictures.Mistake, reason):
                pictures.draw(SAYS + written)
        with self.assertRaisesRegex(pictures.Mistake, "say what the picture shows"):
            pictures.draw('box a 0 0 client "client"')


if __name__ == "__main__":
    unittest.main()
